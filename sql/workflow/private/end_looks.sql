-- Purpose: take looks away behind which nothing is left to do, and put off the others.
-- Invariant: the caller has locked them; those for batches that somebody else holds stay.
-- Raises: nothing.
create or replace function jobq_private.end_looks(looks tid[], left_alone uuid[], queues text[])
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
as $$
    with pending as materialized (
        select l.ctid
        from jobq_private.look as l
        where l.ctid = any(end_looks.looks)
        and (
            l.id = any(end_looks.left_alone)
            or jobq_private.is_unsettled(l.about, l.id, end_looks.queues)
        )
    ),
    kept as (
        update jobq_private.look as l
        set look_at = clock_timestamp() + least(
            greatest(clock_timestamp() - l.created_at, interval '10 ms'), interval '1 s'
        )
        from pending as p
        where l.ctid = p.ctid
    )
    delete from jobq_private.look as l
    where l.ctid = any(end_looks.looks) and l.ctid not in (select p.ctid from pending as p)
$$;

revoke all on function jobq_private.end_looks from public;

comment on function jobq_private.end_looks is
'Takes looks away behind which nothing is left to do.';
