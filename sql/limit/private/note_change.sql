-- Purpose: limits have changed: what runs without a place is looked for (uncounted()), and a repeatable
-- snapshot that is older than the change is to start no job (see_limits()).
-- Invariant: waits for nobody. Where somebody holds the row, that is a change, or a transaction that
-- began before this one has ended and counts as such. Raises: nothing.
create or replace function jobq_private.note_change(slot integer)
returns void
language sql
as $$
    update jobq_private.limit_change as c
    set changed_at = clock_timestamp()
    where c.ctid = any (array(
        select o.ctid
        from jobq_private.limit_change as o
        where o.slot = note_change.slot
        for update skip locked
    ));
    insert into jobq_private.known_limit (limit_id)
    select null
    where not exists (
        select from jobq_private.known_limit as k
        where k.limit_id is null and k.xmin = pg_current_xact_id()::xid
    )
$$;
