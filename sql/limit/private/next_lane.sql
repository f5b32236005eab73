-- Purpose: when the next lane of a queue may have work; a moment in the past means now.
-- Invariant: two index probes. Raises: nothing.
create or replace function jobq_private.next_lane(queue text)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    if exists (select from jobq_private.lane_call as c where c.queue = next_lane.queue) then
        return '-infinity'::timestamptz;
    end if;
    return (
        select l.open_at
        from jobq_private.lane as l
        where l.queue = next_lane.queue and l.state <> 'full'
        order by l.open_at
        limit 1
    );
end
$$;

revoke all on function jobq_private.next_lane from public;

comment on function jobq_private.next_lane is
'Says when the next lane of a queue may have work.';
