-- Purpose: these jobs have started: charge their cost to the rates and budgets of their keys, of their kinds
-- and, where one is given, of the whole queue; and note which job is the last of an ordered lane.
-- Invariant: the caller holds the limits. Those of a kind's key and of a queue are always written to: a
-- repeatable snapshot that has not seen these starts fails at them. Raises: nothing.
create or replace function jobq_private.charge_limits(job_ids uuid[], queue text default null)
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
begin
    perform jobq_private.charge(
        jobq_private.lane_limit_id(s.lane_id, s.concurrency_key, s.kind),
        coalesce('kind ' || s.kind, 'queue ' || s.queue),
        r.spacing, r.budget, s.cost, s.concurrency_key, r.is_ordered, s.last
    )
    from (
        select
            j.lane_id, j.queue, j.concurrency_key, k.kind, sum(coalesce(j.cost, 1)) as cost,
            (array_agg(j.job_id order by j.run_at desc, j.job_id desc))[1] as last
        from jobq_private.job as j
        cross join lateral (
            select jobq_private.lane_kind(j.lane_id, j.queue, j.concurrency_key, j.kind) as kind
        ) as k
        where j.job_id = any (charge_limits.job_ids) and j.concurrency_key is not null
        group by j.lane_id, j.queue, j.concurrency_key, k.kind
        offset 0
    ) as s
    cross join lateral jobq_private.lane_rule(s.queue, s.concurrency_key, s.kind) as r
    where num_nonnulls(r.spacing, r.budget, s.kind) > 0 or r.is_ordered;

    perform jobq_private.charge(
        jobq_private.limit_id(null, s.kind), 'kind ' || s.kind,
        jobq_private.spacing(k.rate_limit, k.rate_period), k.budget, s.cost
    )
    from (
        select j.kind, sum(coalesce(j.cost, 1)) as cost
        from jobq_private.job as j
        where j.job_id = any (charge_limits.job_ids)
        group by j.kind
        offset 0
    ) as s
    join jobq_private.kind as k on k.kind = s.kind
    where num_nonnulls(k.max_running, k.rate_limit, k.budget) > 0;

    if charge_limits.queue is not null then
        perform jobq_private.charge(
            jobq_private.limit_id(q.queue, null), 'queue ' || q.queue,
            jobq_private.spacing(q.rate_limit, q.rate_period), q.budget,
            (
                select coalesce(sum(coalesce(j.cost, 1)), 0)
                from jobq_private.job as j
                where j.job_id = any (charge_limits.job_ids)
            )
        )
        from jobq_private.queue as q
        where q.queue = charge_limits.queue;
    end if;
end
$$;
