-- Purpose: whether a JSON value may hold so many numbers that its text should not be made before
-- they are checked: it is stored compressed, or has more than 2,000 bytes. Inlined, so no SET
-- clause.
create or replace function jobq_private.is_wide(value jsonb)
returns boolean
language sql
stable
as $$
    select pg_catalog.pg_column_size(value) > 2000
        or pg_catalog.pg_column_compression(value) is not null
$$;
