-- Purpose: whether another session holds an advisory lock.
-- Invariant: it is tried, and let go in the same expression, between whose parts no cancel
-- comes. Two that look at the same moment may take each other for a holder. No SET clause, so
-- that it is inlined. Raises: nothing.
create or replace function jobq_private.is_held(class text, slot integer)
returns boolean
language sql
as $$
    select not (
        pg_catalog.pg_try_advisory_lock(jobq_private.lock_class(class), slot)
        and pg_catalog.pg_advisory_unlock(jobq_private.lock_class(class), slot)
    )
$$;
