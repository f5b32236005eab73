-- Purpose: the least lane_id that a queue can have; see lane_ceiling().
create or replace function jobq_private.lane_floor(queue text)
returns uuid
language sql
immutable
as $$
    select (
        pg_catalog.encode(pg_catalog.substr(
            pg_catalog.sha256(pg_catalog.convert_to(lane_floor.queue, 'UTF8')), 1, 6
        ), 'hex') || '00000000000000000000'
    )::pg_catalog.uuid
$$;
