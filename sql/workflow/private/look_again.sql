-- Purpose: have somebody look what redriven jobs that are blocked wait for.
-- Invariant: none is needed for who waits only for others that go back with it: they count as
-- awaited, and cannot end before the commit. Raises: nothing.
create or replace function jobq_private.look_again(blocked uuid[], redriven uuid[])
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    with batch as materialized (
        select b.*
        from jobq_private.batch as b
        where b.on_success = any(look_again.blocked)
        or b.on_end = any(look_again.blocked)
        or b.on_first_death = any(look_again.blocked)
    )
    insert into jobq_private.look (about, id)
    select 'child', w.job_id
    from unnest(look_again.blocked) as w (job_id)
    where not exists (
        select from batch as b where w.job_id in (b.on_success, b.on_end, b.on_first_death)
    )
    and (
        exists (
            select from jobq_private.edge as e
            where e.child = w.job_id and e.is_open and e.parent <> all(look_again.redriven)
        )
        or not exists (
            select from jobq_private.edge as e where e.child = w.job_id and e.is_open
        )
    )
    union all
    select 'batch', b.batch_id from batch as b
$$;

revoke all on function jobq_private.look_again from public;

comment on function jobq_private.look_again is
'Has somebody look what redriven jobs wait for.';
