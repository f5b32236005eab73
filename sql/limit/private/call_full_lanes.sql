-- Purpose: after jobs of these lanes have ended: have those opened that were full, and wake
-- their queues.
-- Invariant: the protocol of call_lane(). Raises: nothing.
create or replace function jobq_private.call_full_lanes(queues text[], lanes uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _seen uuid[] := '{}'::uuid[];
    _called text[];
begin
    if current_setting('transaction_isolation') = 'read committed' then
        _seen := array(
            select u.lane_id
            from unnest(call_full_lanes.lanes) as u (lane_id)
            where pg_try_advisory_xact_lock_shared(
                _closing, jobq_private.lane_slot(u.lane_id)
            )
        );
    end if;
    with called as (
        insert into jobq_private.lane_call as c (queue, lane_id)
        select distinct u.queue, u.lane_id
        from unnest(call_full_lanes.queues, call_full_lanes.lanes) as u (queue, lane_id)
        where u.lane_id <> all (_seen)
        or exists (
            select from jobq_private.lane as l
            where l.lane_id = u.lane_id and l.state = 'full'
        )
        returning c.queue
    )
    select array_agg(distinct c.queue) into _called from called as c;
    if _called is not null then
        perform jobq_private.wake(_called);
    end if;
end
$$;

revoke all on function jobq_private.call_full_lanes from public;

comment on function jobq_private.call_full_lanes is
'Has lanes opened that were full and in which jobs have ended.';
