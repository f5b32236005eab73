-- Purpose: the hook on_redrive() of a full installation: jobs wait again for parents, or for the
-- end of a batch that has not started them yet.
-- Invariant: see sql/job/private/on_redrive.sql. Reopens edges that a death had closed: those of
-- blocked children of these jobs, and those between these jobs and live parents. Locks blocked
-- children in the order of ids, so that none is released meanwhile. Their edges may look open: a
-- transaction that has closed one holds the child. Skips children that the caller may not see,
-- which is harmless if they have run. Batches with these jobs as members or callbacks do not end
-- until the commit; for a batch that has ended, the callback is checked again. "is true" prevents
-- the use of the index of blocked jobs, which would scan the array for each of them.
create or replace function jobq_private.on_redrive(job_ids uuid[])
returns uuid[] language plpgsql set jit = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
    _sees_all constant boolean := jobq_private.worked_queues() is null;
    _since constant timestamptz := (
        select jobq_private.id_time(i.job_id) - interval '1 day'
        from unnest(on_redrive.job_ids) as i (job_id)
        order by i.job_id
        limit 1
    );
    _waiting uuid[];
    _called uuid[];
begin
    _waiting := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(array(
            select e.child
            from jobq_private.edge as e
            where e.parent = any(on_redrive.job_ids) and e.after_failure = 'run'
        ))
        and (j.state = 'blocked') is true
        order by j.job_id
        for no key update
    );
    with may_be_closed as materialized (
        select e.ctid, e.child
        from jobq_private.edge as e
        where e.parent = any(on_redrive.job_ids) and e.after_failure = 'run'
        union
        select e.ctid, e.child
        from jobq_private.edge as e
        join jobq_private.job as p on p.job_id = e.parent
        where e.child = any(on_redrive.job_ids)
        and e.after_failure = 'run' and not e.is_open
    )
    update jobq_private.edge as e
    set is_open = true
    from may_be_closed as c
    where e.ctid = c.ctid
    and (
        c.child in (select w from unnest(_waiting) as w)
        or c.child in (select i from unnest(on_redrive.job_ids) as i)
        or (not _sees_all and jobq_private.state_of(c.child) is null)
    );
    -- As in join_batches(), but an ended batch is allowed.
    with batch as materialized (
        select b.on_success, b.on_end, b.on_first_death
        from jobq_private.batch as b
        where b.batch_id = any(array(
            select a.batch_id
            from jobq_private.job_archive as a
            where a.job_id = any(on_redrive.job_ids)
            and a.finished_at >= _since
            and a.batch_id is not null
        ))
        or b.on_success = any(on_redrive.job_ids)
        or b.on_end = any(on_redrive.job_ids)
        or b.on_first_death = any(on_redrive.job_ids)
        order by b.batch_id
        for key share
    )
    select array_agg(c.job_id) into _called
    from batch as b
    cross join lateral unnest(array[b.on_success, b.on_end, b.on_first_death]) as c (job_id)
    where not exists (
        select from jobq_private.job_archive as a where a.job_id = c.job_id and a.attempt > 0
    );
    return array(
        select w.job_id
        from unnest(on_redrive.job_ids) as w (job_id)
        where w.job_id in (select c from unnest(_called) as c)
        or exists (
            select from jobq_private.edge as e where e.child = w.job_id and e.is_open
        )
    );
end
$$;
