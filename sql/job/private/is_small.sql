-- Purpose: whether a JSON value is surely acceptable: its text is too short to be too deep, too
-- large, or to hold a number beyond the range of a double, which has 309 digits.
-- Invariant: the size on disk is looked at first, since a few bytes there can be megabytes of text.
-- No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.is_small(value jsonb, max_depth integer)
returns boolean
language sql
stable
parallel safe
as $$
    select (
        pg_catalog.pg_column_size(value) <= 600
        and pg_catalog.octet_length(value::text) <= least(308, 2 * max_depth)
    ) is not false
$$;
