-- Purpose: the bytes of a JSON value as text: 0 without one, null if it holds a number that
-- has_huge_number() finds. Inlined, so no SET clause.
create or replace function jobq_private.json_size(value jsonb)
returns integer
language sql
stable
as $$
    select case
        when jobq_private.is_wide(value) is not true
            or not jobq_private.has_huge_number(value)
        then pg_catalog.octet_length(pg_catalog.concat(value))
    end
$$;
