-- Purpose: after attempts have ended: their places are free, those with attempts left wait in their
-- lanes again, and the lane of a dead job may have to wait for an operator.
-- Invariant: the protocol of call_lane(). Raises: nothing.
create or replace function jobq_private.leave_lanes(endings jobq_private.ending[])
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
    _waiting constant uuid[] := array(
        select e.job_id
        from unnest(endings) as e
        where e.state in ('retrying', 'queued') and e.lane_id is not null
    );
begin
    perform jobq_private.hold_after_dead(e)
    from unnest(endings) as e
    where e.state = 'dead' and e.lane_id is not null;
    if _waiting <> '{}' then
        perform jobq_private.call_lanes(_waiting);
    end if;
    perform jobq_private.call_full_lanes(
        array_agg(e.queue), array_agg(e.lane_id), array_agg(e.kind),
        array_agg(e.concurrency_key)
    )
    from unnest(endings) as e;
end
$$;
