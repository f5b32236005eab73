-- Purpose: Resumes deliveries to a paused endpoint, and returns the number of postponed jobs.
-- Invariant: postponed jobs get back their run_at, and so their order; a job whose run_at was
-- changed meanwhile keeps the new one. Resuming an endpoint that is not paused resumes nothing.
-- While grants by queue are enforced, only for a login with work on all queues.
-- Raises: 22004, 42501, JQ007.
-- Returns: how many jobs were postponed.
-- Example: select jobq.resume_endpoint('send-welcome');
create or replace function jobq.resume_endpoint(endpoint text)
returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off as $$
declare
    _ids uuid[];
    _parked record;
begin
    perform jobq_private.check_given('endpoint', num_nulls(resume_endpoint.endpoint));
    perform jobq_private.check_endpoints(array[resume_endpoint.endpoint]);
    -- Both rows that park_delivery() locks. A change of the definition would replace one of them.
    lock table jobq_private.definition_version in share row exclusive mode;
    update jobq_private.kind_queue as o set queue = o.queue where o.kind = resume_endpoint.endpoint;
    perform from jobq_private.endpoint as e
    where e.endpoint = resume_endpoint.endpoint
    for no key update;
    perform jobq_private.check_problem('ALL_QUEUES_NEEDED', case
        when not found then 'endpoint ' || resume_endpoint.endpoint
    end);
    update jobq_private.endpoint as e
    set paused_at = null, pause_reason = null
    where e.endpoint = resume_endpoint.endpoint and e.paused_at is not null;
    if not found then
        return 0;
    end if;

    _ids := array(
        select j.job_id
        from jobq_private.job as j
        join jobq_private.parked_job as p on p.job_id = j.job_id
        where p.endpoint = resume_endpoint.endpoint
        and j.run_at = jobq_private.parked_until()
        order by j.job_id
        for update of j
    );
    -- one by one in the order of run_at: each is placed behind those that are already
    -- due
    for _parked in
        select p.job_id, p.run_at
        from jobq_private.parked_job as p
        where p.job_id = any (_ids)
        order by p.run_at, p.job_id
    loop
        update jobq_private.job as j
        set run_at = _parked.run_at
        where j.job_id = _parked.job_id;
    end loop;
    delete from jobq_private.parked_job as p
    where p.endpoint = resume_endpoint.endpoint;
    perform jobq_private.announce_jobs(_ids);
    perform jobq_private.record_audit('resume_endpoint', resume_endpoint.endpoint);
    return cardinality(_ids);
end
$$;
grant execute on function jobq.resume_endpoint to jobq_operator;
