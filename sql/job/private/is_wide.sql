-- Purpose: whether a JSON value may hold so many numbers that its text should not be made before
-- they are looked at: what is not wide has at most 22 MB. One that comes compressed out of a table is
-- wide, since its length says nothing: 2,000 bytes can be a gigabyte of text.
-- Invariant: looks at the head of the value alone, which costs nothing. No SET clause, so that
-- it is inlined. Raises: nothing.
create or replace function jobq_private.is_wide(value jsonb)
returns boolean
language sql
stable
parallel safe
as $$
    select pg_catalog.pg_column_size(value) > 2000
        or pg_catalog.pg_column_compression(value) is not null
$$;
