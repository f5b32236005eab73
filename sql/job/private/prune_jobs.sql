-- Purpose: delete at most max_rows finished jobs that their kind keeps for less than the global
-- retention; return how many.
-- Invariant: a job that others need is postponed. Locked jobs are left to the next call.
-- Idempotency keys have their own retention, but a kind that allows reuse gets those of failed
-- jobs back, except one that another transaction has locked.
create or replace function jobq_private.prune_jobs(max_rows integer)
returns bigint language plpgsql set jit = off set enable_seqscan = off as $$
declare
    _due uuid[];
    _first timestamptz;
    _last timestamptz;
    _gone jobq_private.ending[];
begin
    select array_agg(d.job_id), min(d.finished_at), max(d.finished_at) into _due, _first, _last
    from (
        select a.job_id, a.finished_at
        from jobq_private.job_archive as a
        where a.prune_at < now()
        order by a.prune_at
        limit prune_jobs.max_rows
        for update skip locked
    ) as d;
    if _due is null then
        return 0;
    end if;
    with needed as materialized (
        select n.* from jobq_private.on_forget(_first, _last, _due, cardinality(_due)) as n
    ),
    put_off as (
        update jobq_private.job_archive as a
        set prune_at = nullif(greatest(n.needed_until, now() + interval '1 s'), 'infinity')
        from needed as n
        where a.job_id = any(_due) and a.finished_at between _first and _last
        and a.job_id = n.job_id
    ),
    gone as (
        delete from jobq_private.job_archive as a
        where a.job_id = any(_due) and a.finished_at between _first and _last
        and a.job_id not in (select n.job_id from needed as n)
        returning a.job_id, a.kind, a.idempotency_key, a.state
    ),
    reusable as materialized (
        select k.kind, k.idempotency_key
        from gone as g
        join jobq_private.idempotency_key as k
            on k.kind = g.kind and k.idempotency_key = g.idempotency_key and k.job_id = g.job_id
        where g.state <> 'succeeded'
        and (select s.reuse_key_after_failure from jobq_private.settings_for(g.kind, null) as s)
        for update of k skip locked
    ),
    freed as (
        delete from jobq_private.idempotency_key as k
        using reusable as r
        where k.kind = r.kind and k.idempotency_key = r.idempotency_key
    )
    select array_agg(row(
        g.job_id, null, null, null, null, null, null, null, null, null, true
    )::jobq_private.ending) into _gone
    from gone as g;
    perform jobq_private.follow_endings(coalesce(_gone, '{}'));
    return coalesce(cardinality(_gone), 0);
end
$$;
