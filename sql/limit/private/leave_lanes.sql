-- Purpose: leave_lane() for a set of jobs whose attempts have ended, in these states, parallel to the
-- ids: places are free, and the jobs wait in their lanes again if they have attempts left.
-- Invariant: all are live still, also the dead ones, whose move into the archive tells of the others
-- of their lanes. Raises: nothing.
create or replace function jobq_private.leave_lanes(job_ids uuid[], states text[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _waiting constant uuid[] := array(
        select e.job_id
        from unnest(leave_lanes.job_ids, leave_lanes.states) as e (job_id, state)
        where e.state = 'retrying'
    );
begin
    perform jobq_private.hold_after_dead(j)
    from unnest(leave_lanes.job_ids, leave_lanes.states) as e (job_id, state)
    join jobq_private.job as j on j.job_id = any(leave_lanes.job_ids) and j.job_id = e.job_id
    where e.state = 'dead' and j.lane_id is not null;

    perform jobq_private.call_lanes(_waiting);
    perform jobq_private.call_full_lanes(
        array_agg(j.queue), array_agg(j.lane_id), array_agg(j.kind),
        array_agg(j.concurrency_key)
    )
    from jobq_private.job as j
    where j.job_id = any(_waiting)
    having count(*) > 0;
end
$$;

revoke all on function jobq_private.leave_lanes from public;

comment on function jobq_private.leave_lanes is
'Has lanes opened that many attempts have left.';
