-- Purpose: whether the transaction that left its mark on a row has ended; next is the one
-- that comes after all that the caller's snapshot knows.
-- Invariant: knows savepoints too, which a snapshot does not list. Of one that has begun
-- since the snapshot it says no. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.is_over(mark xid, next xid8)
returns boolean
language sql
stable
parallel safe
security invoker
as $$
    select case
        when pg_catalog.age(mark) > pg_catalog.age(next::xid)
        then pg_catalog.pg_xact_status(
            (next::text::bigint + pg_catalog.age(next::xid) - pg_catalog.age(mark))
            ::text::xid8
        ) <> 'in progress'
        else false
    end
$$;

revoke all on function jobq_private.is_over from public;

comment on function jobq_private.is_over is
'Whether the transaction that left its mark on a row has ended.';
