-- What jobq.begin_wait() and jobq.end_wait() promise to one session; the protocol
-- between sessions is in tests/python/test_races.py.
begin;
select plan(14);

create function pg_temp.held()
returns bigint
language sql
as $$
select count(*) from pg_catalog.pg_locks as l
where l.locktype = 'advisory' and l.pid = pg_backend_pid() and l.mode = 'ShareLock'
$$;
select is(jobq.begin_wait('{a,b}'), true, 'nobody enqueues, so the worker may sleep');
select is(pg_temp.held(), 3::bigint, 'it is known to wait, and for both queues');
select is(jobq.begin_wait('{b}'), true, 'it may begin again');
select is(pg_temp.held(), 2::bigint, 'for other queues, and no more for the first');
select jobq.end_wait();
select is(pg_temp.held(), 0::bigint, 'end_wait() ends that');
select lives_ok('select jobq.end_wait()', 'also when nothing has begun');
select is(jobq.begin_wait('{}'), true, 'a worker may wait for no queue');
select is(
    refusal(format('select jobq.begin_wait(%L)', a.queues)), a.refusal,
    format('begin_wait(%L): %s', a.queues, a.refusal)
)
from (
    values (null, '22004 NULL_ARGUMENT'), ('{a,null}', '22004 NULL_ARGUMENT'),
    ('{a,a}', 'none')
) as a (queues, refusal);
select jobq.end_wait();
select is(pg_temp.held(), 0::bigint, 'a queue that was named twice is let go of too');

create temporary table many as
select array_agg('queue ' || n) as queues from generate_series(1, 1000) as n;
select is(jobq.begin_wait(m.queues), true, 'a worker may wait for a thousand queues')
from many as m;
select is(
    (
        select count(*) from pg_catalog.pg_locks as l
        where l.locktype = 'advisory' and l.pid = pg_backend_pid()
    ),
    17::bigint, 'which takes a bounded number of locks'
);
select jobq.end_wait();
select jobq.enqueue_many(jsonb_agg(jsonb_build_object('kind', 'work', 'queue', u.queue)))
from many as m
cross join unnest(m.queues) as u (queue);
select is(
    (
        select count(*) from pg_catalog.pg_locks as l
        where l.locktype = 'advisory' and l.pid = pg_backend_pid()
    ),
    16::bigint, 'and so does a batch for a thousand queues'
);

select * from finish();
rollback;
