-- Purpose: how a schedule does, as one document: its last execution, what is under way,
-- and the last 24 hours.
-- Invariant: of one version; a new one starts afresh. HEALTHY below a tenth of
-- failures, FAILING from one half on, DEGRADED between them, IDLE when nothing has
-- ended in a day. Raises: 22004, JQ007.
-- Never: INVALID_ARGUMENT.
-- Returns: a JSON object: health (HEALTHY, DEGRADED, FAILING or IDLE), last_execution,
-- active_executions, cron, stats.last_24h, and what names the version.
-- Example: select jobq.schedule_status('weekly summary') ->> 'health';
create or replace function jobq.schedule_status(schedule text)
returns json
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        schedule_status.schedule
    );
    _document constant json := jobq_private.schedule_document(_found);
    _last_day record;
    _pending bigint;
    _running bigint;
begin
    select s.* into _last_day
    from jobq_private.schedule_statistics(_found.schedule_id) as s;
    select count(*) filter (where j.state <> 'running'),
        count(*) filter (where j.state = 'running')
    into _pending, _running
    from jobq_private.job as j
    where j.schedule_id = _found.schedule_id;

    return json_build_object(
        'job_id', _found.schedule_id,
        'name', _found.name,
        'endpoint', _found.kind,
        'endpoint_type', _document -> 'endpoint_type',
        'trigger', 'CRON',
        'status', _document -> 'status',
        'health', case
            when _last_day.total = 0 then 'IDLE'
            when _last_day.failed * 2 >= _last_day.total then 'FAILING'
            when _last_day.failed * 10 >= _last_day.total then 'DEGRADED'
            else 'HEALTHY'
        end,
        'version', _found.version,
        'last_execution', jobq_private.schedule_last_execution(_found.schedule_id),
        'active_executions', json_build_object(
            'pending', _pending, 'running', _running, 'total', _pending + _running
        ),
        'cron', json_build_object(
            'expression', _found.cron,
            'every_ms', _document -> 'every_ms',
            'next_run_at', _document -> 'next_run_at',
            'last_tick_at', _document -> 'last_tick_at'
        ),
        'stats', json_build_object('last_24h', row_to_json(_last_day))
    );
end
$$;

revoke all on function jobq.schedule_status from public;
grant execute on function jobq.schedule_status
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.schedule_status is
'Returns how a schedule does as a JSON document: health, last execution, what is under way, the last 24 hours.';
