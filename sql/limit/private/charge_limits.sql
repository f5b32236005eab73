-- Purpose: these jobs have started: charge their cost to the limits that they have passed, to that of the whole
-- queue only where is_limited says so; and note which job is the last of an ordered lane.
-- Invariant: the caller holds the limits. Raises: nothing.
create or replace function jobq_private.charge_limits(job_ids uuid[], is_limited boolean)
returns void
language sql
set plan_cache_mode = force_generic_plan
as $$
    select jobq_private.charge(
        s.limit_id, s.scope, s.spacing, s.budget, s.cost, s.concurrency_key, s.is_ordered, s.last
    )
    from (
        select
            l.limit_id, l.scope, l.spacing, l.budget, l.concurrency_key, l.is_ordered,
            sum(coalesce(j.cost, 1)) as cost,
            (array_agg(j.job_id order by j.run_at desc, j.job_id desc))[1] as last
        from jobq_private.job as j
        cross join lateral jobq_private.job_limits(j) as l
        where j.job_id = any (charge_limits.job_ids)
        and l.is_charged
        and (charge_limits.is_limited or num_nonnulls(l.kind, l.concurrency_key) > 0)
        group by l.limit_id, l.scope, l.spacing, l.budget, l.concurrency_key, l.is_ordered
        offset 0
    ) as s
$$;
