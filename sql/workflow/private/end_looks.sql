-- Purpose: take looks away behind which nothing is left to do, and put off the others, but for
-- a round that has moved something, and may have been too short for the rest.
-- Invariant: the caller has locked them, and knows whom they are about; those for batches that
-- somebody else holds stay. Raises: nothing.
create or replace function jobq_private.end_looks(
    looks tid[], parents uuid[], children uuid[], left_alone uuid[], queues text[],
    has_moved boolean
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    with pending as materialized (
        select l.ctid
        from jobq_private.look as l
        where l.ctid = any(end_looks.looks)
        and case l.about
            when 'parent' then l.id in (
                select u.id
                from unnest(
                    jobq_private.unsettled_parents(end_looks.parents, end_looks.queues)
                ) as u (id)
            )
            when 'child' then l.id in (
                select u.id
                from unnest(
                    jobq_private.unsettled_children(end_looks.children, end_looks.queues)
                ) as u (id)
            )
            else l.id = any(end_looks.left_alone)
            or jobq_private.is_batch_due(l.id, end_looks.queues)
        end
    ),
    kept as (
        update jobq_private.look as l
        set look_at = clock_timestamp() + least(
            greatest(clock_timestamp() - l.created_at, interval '10 ms'), interval '1 s'
        )
        from pending as p
        where l.ctid = p.ctid and not end_looks.has_moved
    )
    delete from jobq_private.look as l
    where l.ctid = any(end_looks.looks) and l.ctid not in (select p.ctid from pending as p);
end
$$;

revoke all on function jobq_private.end_looks from public;

comment on function jobq_private.end_looks is
'Takes looks away behind which nothing is left to do.';
