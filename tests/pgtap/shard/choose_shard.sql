-- Where a new job goes.
begin;
select plan(10);

select is(
    (select array_agg(jobq.choose_shard('{0,1,2}', k) order by k)
     from unnest(array['a', 'b', 'c', 'd']) as k),
    '{2,1,1,1}'::integer[],
    'by its key, the same in every version'
);
select is(
    jobq.choose_shard('{0,1,2}', 'a', 'b', 'c'), jobq.choose_shard('{0,1,2}', 'a'),
    'the concurrency key goes first'
);
select is(
    jobq.choose_shard('{0,1,2}', null, 'b', 'c'), jobq.choose_shard('{0,1,2}', 'b'),
    'then the idempotency key'
);
select is(
    jobq.choose_shard('{0,1,2}', dedup_key => 'c'), jobq.choose_shard('{0,1,2}', 'c'),
    'then the dedup key'
);
select set_eq(
    $$ select jobq.choose_shard('{4,7}') from generate_series(1, 200) $$, '{4,7}'::integer[],
    'without a key at random'
);
select is(
    jobq.choose_shard('{0,1}', 'a', after => '{0198c0de-1234-7abc-9f09-0123456789ab}'), 9,
    'what waits for a job goes where that is'
);
select is(
    jobq.choose_shard('{0,1}', 'a', batch_id => '0198c0de-1234-7abc-9f09-0123456789ab'), 9,
    'and a member where its batch is'
);
select is_empty(
    $$
    select k from generate_series(1, 500) as k
    where jobq.choose_shard('{0,1,2,3}', k::text) not in (3, jobq.choose_shard('{0,1,2}', k::text))
    $$,
    'a shard that is added takes keys, and no other key moves'
);
select ok(
    (
        select min(n) > 180 and max(n) < 320
        from (
            select count(*) as n from generate_series(1, 1000) as k
            group by jobq.choose_shard('{0,1,2,3}', k::text)
        ) as c
    ),
    'each gets about as many'
);
select throws_ok($$ select jobq.choose_shard('{}', 'a') $$, '22004', null, 'some must be there');

select * from finish();
rollback;
