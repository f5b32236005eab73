-- Purpose: the greatest lane_id that a queue can have. With lane_floor() it makes a range of an
-- index, which may hold lanes of another queue too. Inlined, so no SET clause.
create or replace function jobq_private.lane_ceiling(queue text)
returns uuid
language sql
immutable
as $$
    select (
        pg_catalog.encode(pg_catalog.substr(
            pg_catalog.sha256(pg_catalog.convert_to(lane_ceiling.queue, 'UTF8')), 1, 6
        ), 'hex') || 'ffffffffffffffffffff'
    )::pg_catalog.uuid
$$;
