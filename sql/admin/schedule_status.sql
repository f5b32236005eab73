-- Purpose: Returns the status of a schedule as a JSON document: health, last execution,
-- active jobs, the last 24 hours.
-- Invariant: covers one version; a new version starts at zero. HEALTHY below a tenth of
-- failures, FAILING from one half on, DEGRADED between them, IDLE if nothing has ended
-- in a day. Raises: 22004, JQ007.
-- Returns: a JSON object: health (HEALTHY, DEGRADED, FAILING or IDLE), last_execution,
-- active_executions, cron, stats.last_24h, and the name and ids of the version.
-- Example: select jobq_internal.schedule_status('weekly summary') ->> 'health';
create or replace function jobq_internal.schedule_status(schedule text)
returns json language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set jit = off set enable_seqscan = off as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(schedule_status.schedule);
begin
    return (
        select row_to_json(d)
        from (
            select _found.schedule_id as job_id, _found.name, _found.kind as endpoint,
                (
                    select e.type from jobq_private.endpoint as e where e.endpoint = _found.kind
                ) as endpoint_type,
                'CRON' as trigger, upper(_found.status) as status,
                case
                    when l.total = 0 then 'IDLE'
                    when l.failed * 2 >= l.total then 'FAILING'
                    when l.failed * 10 >= l.total then 'DEGRADED'
                    else 'HEALTHY'
                end as health,
                _found.version, row_to_json(x) as last_execution, row_to_json(a) as active_executions,
                json_build_object(
                    'expression', _found.cron,
                    'every_ms', jobq_private.milliseconds(_found.every),
                    'next_run_at', jobq_private.moment_in(
                        case when _found.status = 'active' then _found.next_run_at end, _found.time_zone
                    ),
                    'last_tick_at', jobq_private.moment_in(_found.last_tick_at, _found.time_zone)
                ) as cron,
                json_build_object('last_24h', row_to_json(l)) as stats
            from (
                select count(*) as total, count(*) filter (where a.state = 'succeeded') as succeeded,
                    count(*) filter (where a.state = 'dead') as failed,
                    jobq_private.milliseconds(avg(a.finished_at - a.claimed_at)) as avg_duration_ms,
                    jobq_private.milliseconds(percentile_disc(0.99) within group (
                        order by a.finished_at - a.claimed_at
                    )) as p99_duration_ms
                from jobq_private.job_archive as a
                where a.schedule_id = _found.schedule_id
                and a.finished_at >= now() - interval '24 hours'
                and a.state in ('succeeded', 'dead')
            ) as l
            cross join (
                select count(*) filter (where j.state <> 'running') as pending,
                    count(*) filter (where j.state = 'running') as running, count(*) as total
                from jobq_private.job as j
                where j.schedule_id = _found.schedule_id
            ) as a
            left join (
                select j.job_id as execution_id,
                    jobq_private.execution_status(j.state, j.run_at) as status,
                    j.claimed_at as started_at, j.finished_at as completed_at,
                    j.attempts as attempt_number
                from jobq.job as j
                where j.schedule_id = _found.schedule_id
                and (j.state in ('running', 'retrying') or j.finished_at is not null)
                order by j.slot_at desc
                limit 1
            ) as x on true
        ) as d
    );
end
$$;
grant execute on function jobq_internal.schedule_status
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
