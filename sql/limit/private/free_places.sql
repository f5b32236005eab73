-- Purpose: the free places of a lane below its limit, the lowest, as many as are wanted
-- and may be taken; null without a limit.
-- Invariant: counts what runs, from job_place_idx, with the snapshot of the statement: what
-- ended in whatever way is free. What has no place yet counts. What runs above a limit that was lowered counts too. One
-- row; no SET clause, so that it is inlined, and offset 0, so that it is evaluated once.
-- Raises: nothing.
create or replace function jobq_private.free_places(
    queue text, lane_id uuid, max_running integer, wanted integer
)
returns setof smallint[]
language sql
stable
parallel safe
rows 1
as $$
    select case
        when max_running is null then null
        when t.places = '{}' and t.uncounted = 0 and wanted = 1 and max_running > 0 then '{1}'::smallint[]
        else array(
            select n::smallint
            from pg_catalog.generate_series(
                1, least(max_running, pg_catalog.cardinality(t.places) + wanted)
            ) as n
            where n <> all (t.places)
            limit greatest(0, least(wanted, max_running - t.uncounted - pg_catalog.cardinality(t.places)))
        )
    end
    from (
        select array(
            select j.place
            from jobq_private.job as j
            where max_running is not null
            and j.queue = free_places.queue
            and j.lane_id = free_places.lane_id
            and j.place is not null
        ) as places,
        (
            select count(*)::integer
            from jobq_private.uncounted() as u
            where max_running is not null
            and u.queue = free_places.queue and u.lane_id = free_places.lane_id
        ) as uncounted
        offset 0
    ) as t
    offset 0
$$;
