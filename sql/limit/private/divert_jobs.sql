-- Purpose: of jobs that a claim has locked outside lanes, those whose kinds have no gate; the
-- others go into the lanes of their kinds.
-- Invariant: only what was made before its kind got a gate comes here. Raises: nothing.
create or replace function jobq_private.divert_jobs(jobs tid[])
returns tid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _gated tid[];
    _moved uuid[];
begin
    _gated := array(
        select j.ctid
        from jobq_private.job as j
        where j.ctid = any (divert_jobs.jobs)
        and exists (
            select from jobq_private.gate as g
            where g.kind = j.kind and (g.queue is null or g.queue = j.queue)
        )
    );
    if _gated = '{}' then
        return jobs;
    end if;
    with moved as (
        update jobq_private.job as j
        set lane_id = jobq_private.kind_lane_id(j.queue, j.kind)
        where j.ctid = any (_gated)
        returning j.job_id
    )
    select array_agg(m.job_id) into _moved from moved as m;
    perform jobq_private.call_lanes(_moved);
    return array(
        select u.job from unnest(divert_jobs.jobs) as u (job) where u.job <> all (_gated)
    );
end
$$;

revoke all on function jobq_private.divert_jobs from public;

comment on function jobq_private.divert_jobs is
'Has jobs whose kinds have a gate wait in lanes, and returns the others.';
