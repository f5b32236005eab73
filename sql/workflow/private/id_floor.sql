-- Purpose: the smallest UUID of version 7 that can have been created at or after a given time.
-- Invariant: the inverse of id_time(), to the millisecond.
create or replace function jobq_private.id_floor(moment timestamptz)
returns uuid language sql immutable strict as $$
    select (lpad(to_hex(
        greatest(0, least(281474976710655, floor(extract(epoch from moment) * 1000)))::bigint
    ), 12, '0') || repeat('0', 20))::uuid
$$;
