-- Purpose: whether a job of a lane may start.
-- Invariant: a look, no promise. Raises: nothing.
create or replace function jobq_private.has_room(
    queue text, concurrency_key text, lane_id uuid
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select p.places is distinct from '{}'
        from jobq_private.lane_limit(queue, concurrency_key) as m (max_running)
        cross join lateral jobq_private.free_places(lane_id, m.max_running, 1) as p (places)
    );
end
$$;

revoke all on function jobq_private.has_room from public;

comment on function jobq_private.has_room is
'Says whether a job of a lane may start.';
