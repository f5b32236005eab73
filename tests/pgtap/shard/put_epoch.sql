-- From when on which shards get new keys.
begin;
select plan(11);

select jobq.put_shard(0, 'postgresql://here/app', true), jobq.put_shard(1, 'postgresql://there/app') \g /dev/null
select lives_ok($$ select jobq.put_epoch(1, '{0}') $$, 'the first epoch');
select lives_ok(
    $$ select jobq.put_epoch(2, '{0,1}', now() + interval '30 s') $$, 'the next, ahead'
);
select lives_ok($$ select jobq.put_epoch(2, '{0,1}') $$, 'the same again changes nothing');
select results_eq(
    'select epoch, shard_ids, began_at > now() from jobq_internal.list_epochs()',
    $$ values (2, '{0,1}'::integer[], true), (1, '{0}', false) $$,
    'they are listed, the newest first'
);
select is(
    (select keys_until - began_at from jobq_internal.list_epochs() limit 1), interval '30 days',
    'with how long keys of the one before live'
);
select throws_ok(
    $$ select jobq.put_epoch(2, '{1}') $$, '22023', null, 'an epoch is never changed'
);
select throws_ok($$ select jobq.put_epoch(4, '{1}') $$, '22023', null, 'none is left out');
select throws_ok(
    $$ select jobq.put_epoch(3, '{0,7}') $$, '22023', null, 'its shards must be known'
);
select throws_ok($$ select jobq.put_epoch(3, null) $$, '22004', null, 'and given');
select throws_ok(
    format('select jobq.put_epoch(3, ''{0}'', %L)', instant), '22023', null,
    'it begins at no ' || instant || ', which clients could not read'
)
from unnest(array['infinity', '-infinity']) as instant;

select * from finish();
rollback;
