-- Deploy jobq:delivery to pg, after @v1.0.0
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: begin a change of a definition: check its name and the expected version.
-- Invariant: definitions change one at a time, so that referenced definitions cannot disappear
-- meanwhile; the lock lasts until the transaction ends, and no reader waits for it.
-- Raises: 22004, 22023, 42501, JQ004, JQ007.
create or replace function jobq_private.begin_definition(type text, name text, mode text)
returns void language plpgsql as $$
declare
    _exists boolean;
begin
    perform jobq_private.check_given(begin_definition.type, num_nulls(begin_definition.name));
    lock table jobq_private.definition_version in share row exclusive mode;
    select exists (
        select from jobq_private.definition_document as d
        where d.type = begin_definition.type and d.name = begin_definition.name
    ) into _exists;

    perform jobq_private.check_argument(case
        when begin_definition.mode in ('put', 'create', 'update') is not true
        then 'mode must be put, create or update'
    end);
    if begin_definition.mode = 'update' and not _exists then
        perform jobq_private.refuse_definition(begin_definition.type, begin_definition.name);
    end if;
    perform jobq_private.check_problem('ALL_QUEUES_NEEDED', case
        when jobq_private.worked_queues() is not null
        then begin_definition.type || ' ' || begin_definition.name
    end);
    perform jobq_private.check_problem('DEFINITION_EXISTS', case
        when begin_definition.mode = 'create' and _exists
        then begin_definition.type || ' ' || begin_definition.name
    end);
end
$$;

-- Purpose: whether a claim must skip a job because its endpoint is paused; the job is
-- then postponed, once, instead of claimed.
-- Invariant: job_transition() calls this only for deliveries. A postponed job does
-- not slow down later claims. The endpoint's row decides: resume_endpoint() locks it,
-- so it sees every postponed job; while another transaction changes the row, the job
-- only stays where it is. A login with some queues cannot lock it, so resume_endpoint()
-- updates the row of kind_queue too. The newest test of the endpoint passes.
create or replace function jobq_private.park_delivery(
    job_id uuid, endpoint text, run_at timestamptz
)
returns boolean language plpgsql as $$
begin
    if not exists (
        select from jobq_private.endpoint as e
        where e.endpoint = park_delivery.endpoint
        and e.paused_at is not null
        and e.test_job_id is distinct from park_delivery.job_id
    ) then
        return false;
    end if;
    perform from jobq_private.endpoint as e
    where e.endpoint = park_delivery.endpoint and e.paused_at is not null
    for share skip locked;
    if not found then
        perform from jobq_private.kind_queue as o
        where o.kind = park_delivery.endpoint
        for share skip locked;
        if found then  -- a new snapshot: it may have been resumed just before
            perform from jobq_private.endpoint as e
            where e.endpoint = park_delivery.endpoint and e.paused_at is not null;
        end if;
    end if;
    if found then
        insert into jobq_private.parked_job as p (job_id, endpoint, run_at)
        values (park_delivery.job_id, park_delivery.endpoint, park_delivery.run_at)
        on conflict on constraint parked_job_pkey do update
        set run_at = excluded.run_at
        where excluded.run_at <> jobq_private.parked_until();
        update jobq_private.job as j
        set run_at = jobq_private.parked_until()
        where j.job_id = park_delivery.job_id;
    end if;
    return true;
end
$$;

-- Purpose: Returns a page of payload specs, configs, secrets or endpoints as JSON documents.
-- Invariant: contains no value of a secret. Raises: 22004, 22023.
-- Argument type: payload_spec, config, secret or endpoint.
-- Argument max_definitions: maximum number, 1 to 100000.
-- Example: select * from jobq_internal.page_definitions('endpoint');
create or replace function jobq_internal.page_definitions(
    type text, after text default null, max_definitions integer default 50
)
returns table (item json, cursor text) language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
    select jobq_private.check_count(
        'max_definitions', page_definitions.max_definitions, 1, 100000
    );
    select t.item, case when t.n < count(*) over () then t.name end
    from (
        select d.item, d.name, row_number() over (order by d.name) as n
        from jobq_private.definition_document as d
        where d.type = page_definitions.type
        and (page_definitions.after is null or d.name > page_definitions.after)
        order by d.name
        limit page_definitions.max_definitions + 1
    ) as t
    order by t.n
    limit page_definitions.max_definitions
$$;
grant execute on function jobq_internal.page_definitions to jobq_operator, jobq_reader;

comment on function jobq_internal.page_definitions is 'Returns a page of payload specs, configs, secrets or endpoints as JSON documents.';

-- Purpose: Pauses deliveries to an endpoint. Running ones continue; other jobs wait.
-- Invariant: no claim after the commit delivers to it, except for test_endpoint(). A job that
-- becomes due is postponed once, so it does not slow down claims; its run_at is 30 December 9999
-- until resume_endpoint(). While grants by queue are enforced, only for a login with work on all
-- queues. Raises: 22004, 22023, 42501, JQ007.
-- Example: select jobq.pause_endpoint('send-welcome', 'the provider is down');
create or replace function jobq.pause_endpoint(endpoint text, reason text default null)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('endpoint', num_nulls(pause_endpoint.endpoint));
    perform jobq_private.check_argument(case
        when length(pause_endpoint.reason) > 512 then 'reason must have at most 512 characters'
    end);
    perform jobq_private.check_endpoints(array[pause_endpoint.endpoint]);
    update jobq_private.endpoint as e
    set
        paused_at = coalesce(e.paused_at, now()),
        pause_reason = coalesce(pause_endpoint.reason, e.pause_reason)
    where e.endpoint = pause_endpoint.endpoint;
    perform jobq_private.check_problem('ALL_QUEUES_NEEDED', case
        when not found then 'endpoint ' || pause_endpoint.endpoint
    end);
    perform jobq_private.record_audit(
        'pause_endpoint', pause_endpoint.endpoint, pause_endpoint.reason
    );
end
$$;
grant execute on function jobq.pause_endpoint to jobq_operator;

comment on function jobq.pause_endpoint is 'Pauses deliveries to an endpoint. Running ones continue; other jobs wait.';

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

comment on function jobq.resume_endpoint is 'Resumes deliveries to a paused endpoint, and returns the number of postponed jobs.';

commit;
