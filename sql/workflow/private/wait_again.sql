-- Purpose: which of these ended jobs, that are about to be redriven, have to wait again: for jobs
-- that they waited for, or for the end of a batch that has not called them yet.
-- Invariant: edges that a death had closed are opened again: those of blocked jobs that wait for
-- these, and those of these to jobs that live. Blocked ones are locked for it, in the order of
-- ids, so that none is released meanwhile; a child that the caller may not see is not, and no harm
-- is done where it has run already. Batches whose members or jobs at the end these are do not end
-- until the commit; of one that has ended somebody looks anew what becomes of such a job.
-- is true keeps the index of blocked jobs away, by which the array would be gone through for each
-- of them. Raises: nothing.
create or replace function jobq_private.wait_again(job_ids uuid[])
returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    _sees_all constant boolean := jobq_private.worked_queues() is null;
    _since constant timestamptz := (
        select jobq_private.id_time(i.job_id) - interval '1 day'
        from unnest(wait_again.job_ids) as i (job_id)
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
            where e.parent = any(wait_again.job_ids)
            and e.after_failure = 'run' and not e.is_open
        ))
        and (j.state = 'blocked') is true
        order by j.job_id
        for no key update
    );
    with closed as materialized (
        select e.ctid, e.child
        from jobq_private.edge as e
        where e.parent = any(wait_again.job_ids)
        and e.after_failure = 'run' and not e.is_open
        union
        select e.ctid, e.child
        from jobq_private.edge as e
        join jobq_private.job as p on p.job_id = e.parent
        where e.child = any(wait_again.job_ids)
        and e.after_failure = 'run' and not e.is_open
    )
    update jobq_private.edge as e
    set is_open = true
    from closed as c
    where e.ctid = c.ctid
    and (
        c.child in (select w from unnest(_waiting) as w)
        or c.child in (select i from unnest(wait_again.job_ids) as i)
        or (not _sees_all and jobq_private.state_of(c.child) is null)
    );
    -- As join_batches(), but a batch that has ended is no obstacle.
    with batch as materialized (
        select b.on_success, b.on_end, b.on_first_death
        from jobq_private.batch as b
        where b.batch_id = any(array(
            select a.batch_id
            from jobq_private.job_archive as a
            where a.job_id = any(wait_again.job_ids)
            and a.finished_at >= _since
            and a.batch_id is not null
        ))
        or b.on_success = any(wait_again.job_ids)
        or b.on_end = any(wait_again.job_ids)
        or b.on_first_death = any(wait_again.job_ids)
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
        from unnest(wait_again.job_ids) as w (job_id)
        where w.job_id in (select c from unnest(_called) as c)
        or exists (
            select from jobq_private.edge as e where e.child = w.job_id and e.is_open
        )
    );
end
$$;
