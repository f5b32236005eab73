-- Purpose: add rows to pending for redriven jobs that are blocked.
-- Invariant: not for jobs whose parents are all redriven with them: these are marked as
-- awaited, and cannot end before the commit.
create or replace function jobq_private.recheck_redriven(blocked uuid[], redriven uuid[])
returns void
language sql
as $$
    with batch as materialized (
        select b.*
        from jobq_private.batch as b
        where b.on_success = any(recheck_redriven.blocked)
        or b.on_end = any(recheck_redriven.blocked)
        or b.on_first_death = any(recheck_redriven.blocked)
    )
    insert into jobq_private.pending (about, id)
    select 'child', w.job_id
    from unnest(recheck_redriven.blocked) as w (job_id)
    where not exists (
        select from batch as b where w.job_id in (b.on_success, b.on_end, b.on_first_death)
    )
    and (
        exists (
            select from jobq_private.edge as e
            where e.child = w.job_id and e.is_open and e.parent <> all(recheck_redriven.redriven)
        )
        or not exists (
            select from jobq_private.edge as e where e.child = w.job_id and e.is_open
        )
    )
    union all
    select 'batch', b.batch_id from batch as b
$$;
