-- Purpose: the least lane that a queue may have, by which an index of lanes is a range of its queue's.
-- Invariant: the range may hold lanes of another queue whose hash begins alike: who reads it
-- compares the queue too. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.lane_floor(queue text)
returns uuid
language sql
immutable
parallel safe
as $$
    select (
        pg_catalog.encode(pg_catalog.substr(
            pg_catalog.sha256(pg_catalog.convert_to(lane_floor.queue, 'UTF8')), 1, 6
        ), 'hex') || '00000000000000000000'
    )::pg_catalog.uuid
$$;
