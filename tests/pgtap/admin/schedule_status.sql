-- What jobq_internal.schedule_status() promises: how a schedule does, as one document.
begin;
select plan(25);

select hold_off_vacuum();

create function pg_temp.status(name text)
returns jsonb
language sql
as 'select jobq_internal.schedule_status(name)::jsonb';

-- Executions of a schedule that ended some time ago and took so many milliseconds.
create function pg_temp.add(name text, state text, executions integer, ms integer, ago interval)
returns void
language sql
as $$
    insert into jobq_private.job_archive (
        job_id, created_at, run_at, claimed_at, slot_at, lease, timeout, schedule_id, attempt,
        max_attempts, state, previous_state, queue, kind, finished_at
    )
    select jobq_private.new_id(0), now() - ago, now() - ago, now() - ago - ms * interval '1 ms',
        now() - ago - n * interval '1 s', '30 s', '1 min', s.schedule_id, 1, 5, add.state,
        case add.state when 'cancelled' then 'queued' else 'running' end, 'default', s.kind,
        now() - ago
    from jobq.schedule as s
    cross join generate_series(1, executions) as n
    where s.name = add.name and s.status <> 'retired'
$$;

select jobq.create_schedule('weekly', 'push', '0 9 * * MON', time_zone => 'Asia/Kolkata',
    starts_at => '2099-03-16 00:00 UTC') as weekly \gset
select is(
    pg_temp.status('weekly') - 'job_id',
    '{
        "name": "weekly", "endpoint": "push", "endpoint_type": null, "trigger": "CRON",
        "status": "ACTIVE", "health": "IDLE", "version": 1, "last_execution": null,
        "active_executions": {"pending": 0, "running": 0, "total": 0},
        "cron": {"expression": "0 9 * * MON", "every_ms": null,
            "next_run_at": "2099-03-16T09:00:00+05:30", "last_tick_at": null},
        "stats": {"last_24h": {"total": 0, "succeeded": 0, "failed": 0,
            "avg_duration_ms": null, "p99_duration_ms": null}}
    }',
    'before it has fired there is nothing to tell; its times are by the clocks of its zone'
);
select is(pg_temp.status('weekly') ->> 'job_id', :'weekly', 'its id is that of its version');

-- What the specification shows
select pg_temp.add('weekly', 'succeeded', 137, 329, '5 h');
select pg_temp.add('weekly', 'succeeded', 2, 1200, '4 h');
select pg_temp.add('weekly', 'dead', 3, 300, '3 h');
select pg_temp.add('weekly', 'cancelled', 50, 0, '2 h');
select pg_temp.add('weekly', 'dead', 500, 9000, '25 h');
select is(
    pg_temp.status('weekly') #> '{stats,last_24h}',
    '{"total": 142, "succeeded": 139, "failed": 3, "avg_duration_ms": 341,
        "p99_duration_ms": 1200}',
    'the statistics are of what ended in the last 24 hours, without what was cancelled'
);
select is(pg_temp.status('weekly') ->> 'health', 'HEALTHY', '3 of 142 failed: HEALTHY');

-- Health at its bounds
select jobq.create_schedule('frail', 'k', '@daily');
select pg_temp.add('frail', 'succeeded', 91, 1, '1 h');
select pg_temp.add('frail', 'dead', 9, 1, '2 h');
select is(pg_temp.status('frail') ->> 'health', 'HEALTHY', '9 of 100 failed: HEALTHY');
select pg_temp.add('frail', 'dead', 2, 1, '3 h');
select is(pg_temp.status('frail') ->> 'health', 'DEGRADED', '11 of 102 failed: DEGRADED');
select pg_temp.add('frail', 'dead', 79, 1, '4 h');
select is(pg_temp.status('frail') ->> 'health', 'DEGRADED', '90 of 181 failed: DEGRADED');
select pg_temp.add('frail', 'dead', 1, 1, '5 h');
select is(pg_temp.status('frail') ->> 'health', 'FAILING', '91 of 182 failed: FAILING');
select jobq.update_schedule('frail', '{"payload": {"mended": true}}');
select is(pg_temp.status('frail') ->> 'health', 'IDLE', 'a new version starts afresh');
select is(
    pg_temp.status((jobq_internal.get_schedule('frail')).previous_version_id::text) ->> 'health',
    'FAILING', 'and the old one keeps what it did'
);

-- What is under way
select jobq.create_schedule('busy', 'k', every => '1 h', missed => 'all', dedup => 'enqueue');
update jobq_private.schedule set next_run_at = now() - interval '3 h 30 min' where name = 'busy';
select count(*) from jobq_internal.tick() \gset
select job_id as first from jobq.claim('{default}', 'w', 1) \gset
select results_eq(
    $$ select pg_temp.status('busy') -> 'active_executions',
    pg_temp.status('busy') #>> '{last_execution,status}' $$,
    $$ values ('{"pending": 3, "running": 1, "total": 4}'::jsonb, 'RUNNING') $$,
    'it tells what waits and what runs'
);
select is(
    pg_temp.status('busy') #>> '{last_execution,execution_id}', :'first',
    'its last execution is the one that started last, not one that waits'
);
select jobq.complete(:'first', 1);
select results_eq(
    $$ select e ->> 'status', (e ->> 'attempt_number')::integer,
        (e ->> 'completed_at')::timestamptz >= (e ->> 'started_at')::timestamptz
    from (select pg_temp.status('busy') -> 'last_execution') as s (e) $$,
    $$ values ('SUCCESS', 1, true) $$, 'with how it went'
);
select job_id as second from jobq.claim('{default}', 'w', 1) \gset
select jobq.fail(:'second', 1, 'broken', retryable => true);
select results_eq(
    $$ select pg_temp.status('busy') -> 'active_executions',
    pg_temp.status('busy') #>> '{last_execution,status}' $$,
    $$ values ('{"pending": 3, "running": 0, "total": 3}'::jsonb, 'RETRYING') $$,
    'one that will be retried waits'
);
select is(
    pg_temp.status('busy') #>> '{cron,every_ms}', '3600000', 'an interval is told, too'
);
select is(
    (pg_temp.status('busy') #>> '{cron,last_tick_at}')::timestamptz, now() - interval '30 min',
    'and its last slot'
);
select jobq.pause_schedule('busy');
select results_eq(
    $$ select s ->> 'status', s #> '{cron,next_run_at}'
    from pg_temp.status('busy') as t (s) $$,
    $$ values ('PAUSED', 'null'::jsonb) $$, 'a paused one has no next slot'
);
select jobq.retire_schedule('busy');
select is(pg_temp.status('busy') ->> 'status', 'RETIRED', 'a retired one is still told of');

-- Executions
select is(
    array(select (e.item ->> 'job_id')::uuid from jobq_http.page_executions(:'weekly') as e),
    array_fill(:'weekly'::uuid, array[50]), 'executions name the schedule as their job'
);
create temporary table walk (n integer, execution_id uuid, slot_at timestamptz);
do $$
declare
    _schedule uuid := (jobq_internal.get_schedule('weekly')).schedule_id;
    _before timestamptz;
    _pages integer := 0;
begin
    loop
        insert into walk
        select _pages, (e.item ->> 'execution_id')::uuid, null
        from jobq_http.page_executions(_schedule, _before, 200) as e;
        select e.cursor into _before
        from jobq_http.page_executions(_schedule, _before, 200) with ordinality as e
        order by e.ordinality desc
        limit 1;
        _pages := _pages + 1;
        exit when _before is null or _pages > 10;
    end loop;
end
$$;
select results_eq(
    'select count(*), count(distinct execution_id), max(n) from walk',
    'values (692::bigint, 692::bigint, 3)', 'pages hold each of them once'
);
select cursor as slot_at
from jobq_http.page_executions(:'weekly', null, 3) offset 2 \gset
delete from jobq_private.job_archive where slot_at = :'slot_at';
select cmp_ok(
    j.slot_at, '<', :'slot_at'::timestamptz,
    'a page follows one whose last execution is past retention'
)
from jobq_http.page_executions(:'weekly', :'slot_at', 1) as e
join jobq.job as j on j.job_id = (e.item ->> 'execution_id')::uuid;

-- The index serves all of it
select jobq_private.make_partition('job_archive', (now() - interval '1 day')::date);
create temporary table plan (line text);
do $$
declare
    _line text;
begin
    set local enable_seqscan = off;
    for _line in
        explain select from jobq_private.job_archive as a
        where a.schedule_id = '01a1fdd0-36df-77fe-b42e-1301a9da1ba0'
        and a.finished_at >= now() - interval '24 hours'
    loop
        insert into plan values (_line);
    end loop;
end
$$;
select is_empty(
    $$ select line from plan where line ~ 'Seq Scan' $$,
    'statistics are found by the index on schedules'
);

-- Refusals
select is(refusal(a.statement), a.code, format('%s: %s', a.statement, a.code))
from (
    values
    ('select jobq_internal.schedule_status(null)', '22004 NULL_ARGUMENT'),
    ('select jobq_internal.schedule_status(''nobody'')', 'JQ007 SCHEDULE_NOT_FOUND'),
    ('select jobq_internal.schedule_status(gen_random_uuid()::text)', 'JQ007 SCHEDULE_NOT_FOUND')
) as a (statement, code);

select * from finish();
rollback;
