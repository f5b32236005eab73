-- Purpose: the place of a job that starts, null where no limit holds.
-- Invariant: no writer gets a place above the limit, and job_place_idx gives each to one. A
-- claim has looked under the locks of the lane and of the queue's limits; whoever starts a job
-- in another way waits for both here. Raises: JQ011.
create or replace function jobq_private.place_in_lane(
    queue text, concurrency_key text, lane_id uuid, place smallint
)
returns smallint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _limit integer;
    _places smallint[];
begin
    if place is null then
        perform pg_advisory_xact_lock_shared(_limits, hashtext(queue));
    end if;
    select m.max_running into _limit
    from jobq_private.lane_limit(queue, concurrency_key) as m (max_running);
    if _limit is null or place between 1 and _limit then
        return case when _limit is not null then place end;
    end if;
    perform from jobq_private.lane as l where l.lane_id = place_in_lane.lane_id for update;
    select p.places into _places
    from jobq_private.free_places(lane_id, _limit, 1) as p (places);
    if _places = '{}' then
        perform jobq_private.raise_error('LIMIT_REACHED', format(
            'queue %s, concurrency_key %s: %s', queue, concurrency_key, _limit
        ));
    end if;
    return _places[1];
end
$$;

revoke all on function jobq_private.place_in_lane from public;

comment on function jobq_private.place_in_lane is
'Gives a job that starts its place, or refuses it.';
