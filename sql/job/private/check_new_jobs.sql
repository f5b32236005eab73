-- Purpose: refuse a batch of new jobs when one of them is not acceptable.
-- Invariant: reads only; check_new_job() is the shorter way for one. Schemas of payloads are
-- not looked at before store_jobs() and store_job(), in the statement that stores.
-- Raises: 22004, 22023, JQ005, JQ006, JQ010.
create or replace function jobq_private.check_new_jobs(jobs jobq_private.new_job[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _problem text[];
    _bytes integer;
    _depth integer;
begin
    select g.max_payload_bytes, g.max_payload_depth into _bytes, _depth
    from jobq_private.setting as g;

    select array[p.problem[1], format('job %s: %s', p.ordinal, p.problem[2])] into _problem
    from (
        select j.ordinal, jobq_private.new_job_problem(j, t.size, _bytes, _depth) as problem
        from unnest(check_new_jobs.jobs) as j
        cross join lateral (
            select jobq_private.json_size(j.payload)
                + jobq_private.json_size(j.metadata) as size
            offset 0
        ) as t
    ) as p
    where p.problem is not null
    limit 1;

    if _problem is not null then
        perform jobq_private.raise_error(_problem[1], _problem[2]);
    end if;
    perform jobq_private.check_concurrency_keys(check_new_jobs.jobs);
    perform jobq_private.check_queue_depth(check_new_jobs.jobs);
end
$$;

revoke all on function jobq_private.check_new_jobs from public;

comment on function jobq_private.check_new_jobs is
'Refuses a batch of new jobs when one of them is not acceptable.';
