-- Purpose: allow deliveries to a paused endpoint again, and wake its workers.
-- Invariant: what was put aside gets its run_at back, and so its place in the order; what
-- was given another one meanwhile keeps that. Resuming an endpoint that is not paused
-- changes nothing.
-- Raises: 22004, JQ007.
-- Argument endpoint: its name.
-- Returns: how many jobs were put aside.
-- Example: select jobq.resume_endpoint('send-welcome');
create or replace function jobq.resume_endpoint(endpoint text)
returns bigint
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _parked uuid[];
    _due_at timestamptz[];
    _ids uuid[];
    _queues text[];
begin
    if resume_endpoint.endpoint is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'endpoint');
    end if;
    perform jobq_private.check_endpoints(array[resume_endpoint.endpoint]);
    update jobq_private.endpoint as e
    set paused_at = null, pause_reason = null
    where e.endpoint = resume_endpoint.endpoint and e.paused_at is not null;
    if not found then
        return 0;
    end if;

    with parked as (
        delete from jobq_private.parked_job as p
        where p.endpoint = resume_endpoint.endpoint
        returning p.job_id, p.run_at
    )
    select array_agg(p.job_id), array_agg(p.run_at) into _parked, _due_at from parked as p;
    _ids := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any (_parked)
        and j.run_at = jobq_private.parked_until()
        order by j.job_id
        for update
    );
    with due as (
        update jobq_private.job as j
        set run_at = p.run_at
        from unnest(_parked, _due_at) as p (job_id, run_at)
        where j.job_id = p.job_id and p.job_id = any (_ids)
        returning j.queue
    )
    select array_agg(distinct d.queue) into _queues from due as d;
    perform jobq_private.call_lanes(_ids);
    perform jobq_private.wake(coalesce(_queues, '{}'));
    perform jobq_private.record_audit('resume_endpoint', resume_endpoint.endpoint);
    return cardinality(_ids);
end
$$;

revoke all on function jobq.resume_endpoint from public;
grant execute on function jobq.resume_endpoint to jobq_operator;

comment on function jobq.resume_endpoint is
'Allows deliveries to a paused endpoint again, and returns how many jobs it had put aside.';
