-- Purpose: of jobs that a claim has locked those that wait where they should; the others are moved into
-- the lanes of their kinds, or of their queues.
-- Invariant: only what was stored before its kind got or lost limits is moved. Raises: nothing.
create or replace function jobq_private.divert_jobs(jobs tid[])
returns tid[]
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _moved uuid[];
    _rows tid[];
begin
    with moved as (
        update jobq_private.job as j
        set lane_id = l.lane_id
        from (
            select o.ctid as row, jobq_private.lane_of(
                o.queue, o.concurrency_key, o.kind,
                o.concurrency_key is null and exists (
                    select from jobq_private.limit_state as g
                    where g.kind = o.kind and (g.queue is null or g.queue = o.queue)
                )
            ) as lane_id
            from jobq_private.job as o
            where o.ctid = any (divert_jobs.jobs)
            offset 0
        ) as l
        where j.ctid = l.row and l.lane_id is not null and l.lane_id is distinct from j.lane_id
        returning j.job_id, l.row
    )
    select array_agg(m.job_id), array_agg(m.row) into _moved, _rows from moved as m;
    if _moved is not null then
        perform jobq_private.call_lanes(_moved);
        jobs := array(
            select u.job
            from unnest(divert_jobs.jobs) with ordinality as u (job, n)
            where u.job <> all (_rows)
            order by u.n
        );
    end if;
    return jobs;
end
$$;
