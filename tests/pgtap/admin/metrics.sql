-- What jobq.metrics() promises.
begin;
select plan(11);

-- How many buffers a second call reads; the first one marks what those before have left.
create function pg_temp.buffers()
returns integer
language plpgsql
as $$
declare
    _plan json;
begin
    for _n in 1..2 loop
        execute 'explain (analyze, buffers, timing off, format json)
            select * from jobq.metrics()' into _plan;
    end loop;
    return (_plan #>> '{0,Plan,Shared Hit Blocks}')::integer
        + (_plan #>> '{0,Plan,Shared Read Blocks}')::integer;
end
$$;

create function pg_temp.counts()
returns setof text
language sql
begin atomic
    select format('%s %s %s', m.name, m.queue, m.value)
    from jobq.metrics() as m
    where m.name in ('queue_backlog', 'running_jobs', 'blocked_jobs', 'expired_leases', 'dlq_size')
    order by m.queue, m.name collate "C";
end;

select results_eq(
    'select * from jobq.metrics()',
    $$ values ('lost_attempts', null::text, 0::double precision), ('enqueue_qps', null, 0) $$,
    'without jobs there is a rate of zero, and no row for what has no value'
);

-- Queue a: two wait, one retries, one waits for its time, two run; b: one is dead.
select count(*) from jobq.enqueue_many(
    '[{"kind": "k", "queue": "a"}, {"kind": "k", "queue": "a"}, {"kind": "k", "queue": "a"},
    {"kind": "k", "queue": "a"}, {"kind": "k", "queue": "a"}]'
);
select jobq.enqueue('k', queue => 'a', run_at => now() + interval '1 h');
select from jobq.claim('{a}', 'w', 3);
select jobq.fail(j.job_id, 1, 'x', retry_in => '1 h')
from (
    select job_id from jobq_private.job where state = 'running' limit 1
) as j;
select jobq.enqueue('k', queue => 'a', after => array(
    select j.job_id from jobq_private.job as j where j.state = 'running' limit 1
));
select jobq.enqueue('k', queue => 'b') as dead \gset
select from jobq.claim('{b}', 'w');
select jobq.fail(:'dead', 1, 'x', retryable => false);
select jobq.enqueue('k', queue => 'c') as done \gset
select from jobq.claim('{c}', 'w');
select jobq.complete(:'done', 1);

select results_eq(
    'select distinct m.name collate "C", m.queue is null from jobq.metrics() as m order by 1',
    $$
    values ('blocked_jobs' collate "C", false), ('dlq_size', false), ('enqueue_qps', true),
    ('expired_leases', false), ('fail_rate', true), ('job_latency_p95_seconds', true),
    ('lost_attempts', true), ('oldest_runnable_seconds', false), ('queue_backlog', false), ('running_jobs', false)
    $$,
    'counts and ages are told for each queue, rates and latency for all'
);
select is(
    array(select pg_temp.counts()),
    '{blocked_jobs a 1,expired_leases a 0,queue_backlog a 4,running_jobs a 2,dlq_size b 1}',
    'what waits, what runs and what is dead is counted by queue; what succeeded is not'
);
select is(
    (select m.value from jobq.metrics() as m where m.name = 'enqueue_qps'),
    9 / 60.0::double precision,
    'the rate counts the jobs of the last minute, live and ended'
);
select is(
    (select m.value from jobq.metrics() as m where m.name = 'fail_rate'),
    0.5::double precision,
    'of the jobs that ended, half are dead'
);

set local session_replication_role = replica;
update jobq_private.job set lease_expires_at = now() - interval '1 s'
where job_id = (select job_id from jobq_private.job where state = 'running' limit 1);
update jobq_private.job set run_at = now() - interval '90 s'
where job_id = (select job_id from jobq_private.job where state = 'queued' limit 1);
update jobq_private.job_archive
set created_at = now() - interval '20 s', finished_at = now() - interval '10 s';
set local session_replication_role = origin;
select is(
    array(select pg_temp.counts()),
    '{blocked_jobs a 1,expired_leases a 1,queue_backlog a 4,running_jobs a 2,dlq_size b 1}',
    'a lease that has run out is counted, and its job still runs'
);
select is(
    (
        select m.value from jobq.metrics() as m
        where m.name = 'job_latency_p95_seconds'
    ),
    10::double precision,
    'latency is from created to ended, in seconds'
);
select ok(
    (
        select m.value between 90 and extract(epoch from clock_timestamp() - now()) + 90
        from jobq.metrics() as m
        where m.name = 'oldest_runnable_seconds'
    ),
    'the oldest is as old as what could have run for longest'
);

set local session_replication_role = replica;
update jobq_private.job_archive set finished_at = now() - interval '301 s';
set local session_replication_role = origin;
select results_eq(
    $$
    select m.name from jobq.metrics() as m
    where m.name in ('dlq_size', 'fail_rate', 'job_latency_p95_seconds')
    $$,
    $$ values ('dlq_size') $$,
    'five minutes after the last end there is no rate, and the dead are still counted'
);

-- History: what succeeded days ago
set local session_replication_role = replica;
create function pg_temp.archive(first integer, last integer)
returns void
language sql
begin atomic
    insert into jobq_private.job_archive (
        job_id, kind, queue, state, previous_state, run_at, created_at, finished_at,
        attempt, max_attempts, timeout, lease
    )
    select
        jobq_private.id_floor(now() - interval '1 day' - n * interval '1 s'), 'k', 'a',
        'succeeded', 'running', now(), now(), now() - interval '1 day', 1, 5, '1 min', '30 s'
    from generate_series(archive.first, archive.last) as n;
end;
select pg_temp.archive(1, 2000);
set local session_replication_role = origin;
analyze jobq_private.job_archive;
select pg_temp.buffers() as few \gset
set local session_replication_role = replica;
select pg_temp.archive(2001, 30000);
set local session_replication_role = origin;
select pg_temp.buffers() as many \gset
select cmp_ok(
    :many, '<', :few + 200, 'fifteen times the history costs no more, before statistics'
);
analyze jobq_private.job_archive;
select cmp_ok(pg_temp.buffers(), '<', :few + 200, 'nor after them');

select * from finish();
rollback;
