-- Purpose: lock the limits that a job passes, and its lane.
-- Invariant: waits, in the order of limits; limits that are missing are made. A lane that no claim has
-- opened has no row: then the lock under which claims make it stands for one. Raises: nothing.
create or replace function jobq_private.wait_for_limits(job jobq_private.job)
returns void
language plpgsql
as $$
declare
    _making_limits constant integer := jobq_private.lock_class('gating');
    _making_lanes constant integer := jobq_private.lock_class('laning');
    _limits uuid[];
    _held integer;
begin
    _limits := array(
        select g.limit_id from jobq_private.job_limits(job) as g
        where g.is_charged
        or exists (select from jobq_private.limit_state as e where e.limit_id = g.limit_id)
    );
    perform pg_advisory_xact_lock(_making_limits, n.slot)
    from (
        select distinct jobq_private.lane_slot(u.limit_id) as slot
        from unnest(_limits) as u (limit_id)
        where not exists (select from jobq_private.limit_state as g where g.limit_id = u.limit_id)
        order by slot
        offset 0
    ) as n;
    loop  -- again where prune_limits() has deleted one in between
        insert into jobq_private.limit_state (limit_id, queue)
        select u.limit_id, job.queue from unnest(_limits) as u (limit_id) order by u.limit_id
        on conflict on constraint limit_state_pkey do nothing;
        perform from jobq_private.limit_state as g
        where g.limit_id = any (_limits)
        order by g.limit_id
        for update;
        get diagnostics _held = row_count;
        exit when _held = (select count(distinct u.limit_id) from unnest(_limits) as u (limit_id));
    end loop;
    for _look in 1 .. 2 loop
        perform from jobq_private.lane as l
        where l.lane_id = job.lane_id
        order by l.priority
        for update;
        exit when found or job.lane_id is null;
        perform pg_advisory_xact_lock(_making_lanes, jobq_private.lane_slot(job.lane_id));
    end loop;
end
$$;
