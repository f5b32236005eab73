-- Purpose: whether a JSON value holds a number beyond the range of a double.
-- Invariant: jsonb keeps such numbers (1e131071 has nine characters), but readers of JSON
-- refuse them, and with them the whole batch that a worker has claimed. A short text
-- cannot hold one, so only long ones are searched. Raises: nothing.
create or replace function jobq_private.has_huge_number(value jsonb)
returns boolean
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(
        octet_length(value::text) > 308
        and jsonb_path_exists(value, 'strict $.** ? (@ >= 1.8e308 || @ <= -1.8e308)'), false
    )
$$;

revoke all on function jobq_private.has_huge_number from public;

comment on function jobq_private.has_huge_number is
'Says whether a JSON value holds a number beyond the range of a double.';
