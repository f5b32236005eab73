-- Purpose: an interval as a whole number of milliseconds.
-- Invariant: months count as 30 days.
create or replace function jobq_private.milliseconds(length interval)
returns bigint language sql immutable strict as $$
    select (pg_catalog.date_part('epoch', length) * 1000)::bigint
$$;
