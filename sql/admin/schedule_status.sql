-- Purpose: Returns the status of a schedule as a JSON document: health, last execution,
-- active jobs, the last 24 hours.
-- Invariant: covers one version; a new version starts at zero. HEALTHY below a tenth of
-- failures, FAILING from one half on, DEGRADED between them, IDLE if nothing has ended
-- in a day. Raises: 22004, JQ007.
-- Returns: a JSON object: health (HEALTHY, DEGRADED, FAILING or IDLE), last_execution,
-- active_executions, cron, stats.last_24h, and the name and ids of the version.
-- Example: select jobq_internal.schedule_status('weekly summary') ->> 'health';
create or replace function jobq_internal.schedule_status(schedule text)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        schedule_status.schedule
    );
    _last_day record;
    _last_execution json;
    _pending bigint;
    _running bigint;
begin
    select
        count(*) as total, count(*) filter (where a.state = 'succeeded') as succeeded,
        count(*) filter (where a.state = 'dead') as failed,
        jobq_private.milliseconds(avg(a.finished_at - a.claimed_at)) as avg_duration_ms,
        jobq_private.milliseconds(
            percentile_disc(0.99) within group (order by a.finished_at - a.claimed_at)
        ) as p99_duration_ms
    into _last_day
    from jobq_private.job_archive as a
    where a.schedule_id = _found.schedule_id
    and a.finished_at >= now() - interval '24 hours'
    and a.state in ('succeeded', 'dead');
    select json_build_object(
        'execution_id', j.job_id,
        'status', jobq_private.execution_status(j.state, j.run_at),
        'started_at', j.claimed_at,
        'completed_at', j.finished_at,
        'attempt_number', j.attempts
    ) into _last_execution
    from jobq.job as j
    where j.schedule_id = _found.schedule_id
    and (j.state in ('running', 'retrying') or j.finished_at is not null)
    order by j.slot_at desc
    limit 1;
    select count(*) filter (where j.state <> 'running'),
        count(*) filter (where j.state = 'running')
    into _pending, _running
    from jobq_private.job as j
    where j.schedule_id = _found.schedule_id;

    return json_build_object(
        'job_id', _found.schedule_id,
        'name', _found.name,
        'endpoint', _found.kind,
        'endpoint_type', (
            select e.type from jobq_private.endpoint as e where e.endpoint = _found.kind
        ),
        'trigger', 'CRON',
        'status', upper(_found.status),
        'health', case
            when _last_day.total = 0 then 'IDLE'
            when _last_day.failed * 2 >= _last_day.total then 'FAILING'
            when _last_day.failed * 10 >= _last_day.total then 'DEGRADED'
            else 'HEALTHY'
        end,
        'version', _found.version,
        'last_execution', _last_execution,
        'active_executions', json_build_object(
            'pending', _pending, 'running', _running, 'total', _pending + _running
        ),
        'cron', json_build_object(
            'expression', _found.cron,
            'every_ms', jobq_private.milliseconds(_found.every),
            'next_run_at', jobq_private.moment_in(
                case when _found.status = 'active' then _found.next_run_at end, _found.time_zone
            ),
            'last_tick_at', jobq_private.moment_in(_found.last_tick_at, _found.time_zone)
        ),
        'stats', json_build_object('last_24h', row_to_json(_last_day))
    );
end
$$;

grant execute on function jobq_internal.schedule_status
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
