-- Purpose: of each of these keys, its next due jobs and the slots that they get; with
-- the keys in which there was none, or that may not start one.
-- Invariant: the caller has locked the keys' limits, if any apply. One job of each key
-- while there are keys for all that is wanted (what is locked beyond that is left);
-- else equal shares. skipped counts jobs of unwanted kinds.
create or replace function jobq_private.take_jobs(
    keys jobq_private.waiting_key[], now timestamptz, wanted integer, has_limits boolean,
    kinds text[], except_kinds text[]
)
returns jobq_private.key_batch
language plpgsql
as $$
declare
    _share constant integer := case cardinality(keys)
        when least(wanted, 100) then 1
        else ceil(wanted::numeric / greatest(1, cardinality(keys)))
    end;
    _scopes constant jobq_private.scope[] := array(
        select row(k.key_id, k.queue, k.kind, k.concurrency_key)::jobq_private.scope
        from unnest(take_jobs.keys) as k
        where take_jobs.has_limits
    );
    _batch jobq_private.key_batch;
begin
    with allowed as materialized (
        select r.n, r.max_starts, r.used_slots, r.rate_left, r.budget_left, r.first_job_id, r.is_charged
        from jobq_private.check_limits(_scopes, take_jobs.now) as r
    ),
    tried as materialized (
        select k.ordinality as n, r.used_slots, r.rate_left, r.budget_left, array(
            select j.ctid
            from jobq_private.job as j
            where j.queue = k.queue
            and j.key_id = k.key_id
            and j.priority = k.priority
            and j.state in ('queued', 'retrying')
            and j.run_at <= take_jobs.now
            and (r.first_job_id is null or j.job_id = r.first_job_id)
            order by j.run_at, j.job_id
            limit least(_share, r.max_starts)
            for update skip locked
        ) as jobs
        from unnest(take_jobs.keys) with ordinality as k
        left join allowed as r on r.n = k.ordinality
    ),
    seen as materialized (
        select
            u.job, f.slots[u.k] as slot, u.k, t.n,
            coalesce(take_jobs.kinds is null or j.kind = any(take_jobs.kinds), false)
            and coalesce(j.kind <> all(take_jobs.except_kinds), true) as is_wanted,
            -- a rate lets a job start while a unit is left, a budget while the whole cost is
            coalesce(sum(coalesce(j.cost, 1)) over key - coalesce(j.cost, 1) < t.rate_left, true)
            and coalesce(sum(coalesce(j.cost, 1)) over key <= t.budget_left, true) as fits
        from tried as t
        cross join lateral (
            -- the lowest that are free; none without limits
            select array(
                select n::smallint
                from generate_series(1, cardinality(t.used_slots) + cardinality(t.jobs)) as n
                where n <= 32767 and n <> all(t.used_slots)
            ) as slots
        ) as f
        cross join lateral unnest(t.jobs) with ordinality as u (job, k)
        join jobq_private.job as j on j.ctid = u.job
        window key as (partition by t.n order by u.k)
    ),
    taken as materialized (
        select s.* from seen as s where s.fits order by s.k, s.n limit wanted
    )
    select
        coalesce(array_agg(t.job order by t.k, t.n) filter (where t.is_wanted), '{}'),
        array_agg(t.slot order by t.k, t.n) filter (where t.is_wanted),
        (select bool_or(a.is_charged) from allowed as a),
        array(
            select take_jobs.keys[n.n] from tried as n
            where n.n not in (select s.n from seen as s where s.fits)
        ),
        count(*) filter (where not t.is_wanted)
    into _batch
    from taken as t;
    return _batch;
end
$$;
