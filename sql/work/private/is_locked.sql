-- Purpose: whether another session holds an advisory lock.
-- Invariant: tries the lock and releases it in one expression, so that no cancel comes between.
-- Two sessions that test at once may take each other for a holder. Inlined, so no SET clause.
create or replace function jobq_private.is_locked(class text, key integer)
returns boolean language sql as $$
    select not (
        pg_catalog.pg_try_advisory_lock(jobq_private.lock_class(class), key)
        and pg_catalog.pg_advisory_unlock(jobq_private.lock_class(class), key)
    )
$$;
