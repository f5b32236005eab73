-- Purpose: whether a JSON value is too short to be too deep or too large, or to hold a number
-- beyond the range of a double.
-- Invariant: compares the stored size first: a few bytes can be megabytes of text. Callers need a
-- generic plan: the planner would convert a constant to text. Inlined, so no SET clause.
create or replace function jobq_private.is_small(value jsonb, max_depth integer)
returns boolean language sql stable as $$
    select (
        pg_catalog.pg_column_size(value) <= 600
        and pg_catalog.octet_length(value::text) <= least(308, 2 * max_depth)
    ) is not false
$$;
