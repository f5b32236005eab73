-- Purpose: whether a claim may find work in lanes of a queue.
-- Invariant: two index probes. Raises: nothing.
create or replace function jobq_private.has_lanes(queue text, now timestamptz)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return exists (
        select from jobq_private.lane as l
        where l.queue = has_lanes.queue
        and l.state <> 'full'
        and l.open_at <= has_lanes.now
    )
    or exists (select from jobq_private.lane_call as c where c.queue = has_lanes.queue);
end
$$;

revoke all on function jobq_private.has_lanes from public;

comment on function jobq_private.has_lanes is
'Says whether a claim may find work in lanes of a queue.';
