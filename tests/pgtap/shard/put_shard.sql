-- A database gets its number before it has jobs.
begin;
select plan(12);

select is_empty('select * from jobq_internal.list_shards()', 'a database is in no cluster at first');
select lives_ok(
    $$ select jobq.put_shard(3, 'postgresql://here/app', true) $$, 'it is given a number'
);
select jobq.enqueue('k') as job_id \gset
select is(jobq_internal.shard_of(:'job_id'), 3, 'which the ids of its jobs carry');
select is(jobq_internal.shard_of(jobq.open_batch()), 3, 'and those of its batches');
select lives_ok(
    $$ select jobq.put_shard(4, 'postgresql://there/app') $$, 'another is named'
);
select results_eq(
    'select shard_id, url, is_own from jobq_internal.list_shards()',
    $$ values (3, 'postgresql://here/app', true), (4, 'postgresql://there/app', false) $$,
    'all are listed'
);
select throws_ok(
    $$ select jobq.put_shard(5, 'postgresql://here/app', true) $$, '22023', null,
    'a database that has jobs keeps its number'
);
select throws_ok($$ select jobq.put_shard(256, 'x') $$, '22023', null, 'up to 255');
select throws_ok($$ select jobq.put_shard(-1, 'x') $$, '22023', null, 'from 0');
select throws_ok($$ select jobq.put_shard(1, '') $$, '22023', null, 'with a URL');
select throws_ok(
    $$ select jobq.put_shard(1, 'postgresql://a:secret@there/app') $$, '22023', null,
    'without a password'
);
select throws_ok($$ select jobq.put_shard(null, 'x') $$, '22004', null, 'and with a number');

select * from finish();
rollback;
