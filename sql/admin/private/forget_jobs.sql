-- Purpose: delete jobs, live or finished, with all their records.
-- Invariant: the caller has locked their rows. Jobs that wait for them, or have called
-- them, are checked again, and so are their batches, which cannot succeed without them. "is true"
-- prevents the use of partial indexes, which would scan the array for each entry.
create or replace function jobq_private.forget_jobs(job_ids uuid[])
returns void language sql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
    select jobq_private.follow_endings(array_agg(row(
        i.job_id, null, null, null, null, null, null, null, null, null, true
    )::jobq_private.ending))
    from unnest(forget_jobs.job_ids) as i (job_id);
    insert into jobq_private.pending (about, id)
    select 'child', e.child
    from jobq_private.edge as e where e.parent = any(forget_jobs.job_ids) and e.is_open
    union
    select 'call', e.parent
    from jobq_private.edge as e
    where e.parent = any(forget_jobs.job_ids) and e.after_failure in ('call', 'detach')
    union
    select 'batch', j.batch_id
    from jobq_private.job as j
    where j.job_id = any(forget_jobs.job_ids) and (j.batch_id is not null) is true;
    update jobq_private.batch as b
    set has_lost = true
    where b.ended_at is null and not b.has_lost and b.batch_id in (
        select j.batch_id from jobq_private.job as j
        where j.job_id = any(forget_jobs.job_ids)
        union all
        select a.batch_id from jobq_private.job_archive as a
        where a.job_id = any(forget_jobs.job_ids) and (a.state <> 'succeeded') is true
    );
    -- The end of a called job still looks for callers: a fork may be about to take its edge over.
    delete from jobq_private.edge as e
    where e.child = any(forget_jobs.job_ids) and not (
        e.after_failure in ('call', 'detach')
        and (select true from jobq_private.job as j where j.job_id = e.parent) is true
    );
    delete from jobq_private.node as n where n.job_id = any(forget_jobs.job_ids);
    delete from jobq_private.event as e where e.job_id = any(forget_jobs.job_ids);
    with live as (
        delete from jobq_private.job as j where j.job_id = any(forget_jobs.job_ids)
        returning j.job_id, j.kind, j.idempotency_key, j.dedup_key
    ),
    ended as (
        delete from jobq_private.job_archive as a
        where a.job_id = any(forget_jobs.job_ids)
        returning a.job_id, a.kind, a.idempotency_key, a.dedup_key
    ),
    gone as (select * from live union all select * from ended),
    throttles as materialized (
        select t.kind, t.dedup_key
        from jobq_private.throttle as t
        join gone as g on t.kind = g.kind and t.dedup_key = g.dedup_key and t.job_id = g.job_id
        order by t.kind, t.dedup_key  -- as enqueue_many() locks them
        for update of t
    ),
    opened as (
        delete from jobq_private.throttle as t
        using throttles as o
        where t.kind = o.kind and t.dedup_key = o.dedup_key
    ),
    -- More idempotency keys can stand for a job with a dedup key. No index leads from it to them: read
    -- those made since.
    aliases as (
        delete from jobq_private.idempotency_key as k
        using gone as g
        where k.created_at > (
            select min(jobq_private.id_time(d.job_id)) - interval '1 day'
            from gone as d where d.dedup_key is not null
        )
        and k.kind = g.kind and k.job_id = g.job_id and g.dedup_key is not null
        and k.idempotency_key is distinct from g.idempotency_key
    )
    delete from jobq_private.idempotency_key as k
    using gone as g
    where k.kind = g.kind and k.idempotency_key = g.idempotency_key and k.job_id = g.job_id;
    select jobq_private.tell_ended(forget_jobs.job_ids)
    where jobq_private.is_locked('awaiting', 0)
$$;
