-- Purpose: the bytes of a JSON value as text: 0 without one, null where a wide one holds a number
-- that has_huge_number() tells of.
-- Invariant: 600 kB of such numbers as 1e-16383 are more text than PostgreSQL can hold, so it is not
-- made; not by the planner for a constant either, since concat() is stable. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.json_size(value jsonb)
returns integer
language sql
stable
parallel safe
as $$
    select case
        when jobq_private.is_wide(value) is not true
            or not jobq_private.has_huge_number(value)
        then pg_catalog.octet_length(pg_catalog.concat(value))
    end
$$;
