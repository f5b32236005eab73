-- Purpose: correct what the start of a running job has charged to its rates and budgets.
-- Invariant: more than was charged always counts, now. Less gives back what time has not paid for yet, and what
-- was charged in the budget's present period: so nothing that was not charged is given back. What it makes room
-- for may start. Raises: nothing.
create or replace function jobq_private.correct_charge(
    job jobq_private.job, charged numeric, delta numeric
)
returns void
language plpgsql
as $$
declare
    _now timestamptz;
    _queues text[];
begin
    perform from jobq_private.limit_state as g
    where g.limit_id in (select j.limit_id from jobq_private.job_limits(job) as j)
    order by g.limit_id
    for update;
    _now := clock_timestamp();
    update jobq_private.limit_state as g
    set
        level = n.level, spent = n.spent, charged_at = _now,
        idle_at = jobq_private.idle_at(n.level, j.spacing, j.budget, _now),
        full_until = case when delta > 0 then g.full_until end
    from jobq_private.job_limits(job) as j
    cross join lateral (
        select
            case when j.spacing is not null then greatest(
                0, jobq_private.level(o.level, o.charged_at, j.spacing, _now)
                + case
                    when delta > 0 then delta
                    when job.claimed_at >= o.charged_since then greatest(delta, least(
                        0, extract(epoch from _now - job.claimed_at) * 1000000 / j.spacing - charged
                    ))
                    else 0
                end
            ) end as level,
            case when (j.budget).amount is not null then greatest(
                0, jobq_private.budget_spent(j.budget, o.spent, o.charged_at, _now)
                + case
                    when delta > 0 or job.claimed_at >= greatest(
                        o.charged_since, jobq_private.budget_start(j.budget, _now)
                    ) then delta
                    else 0
                end
            ) end as spent
        from jobq_private.limit_state as o
        where o.limit_id = j.limit_id
    ) as n
    where g.limit_id = j.limit_id and num_nonnulls(j.spacing, j.budget) > 0;
    if not found or delta > 0 then
        return;
    end if;
    with called as (
        insert into jobq_private.lane_call (queue, lane_id, concurrency_key)
        select l.queue, l.lane_id, l.concurrency_key
        from jobq_private.lane as l
        where l.state <> 'open'
        and (
            l.lane_id = job.lane_id
            or l.kind = job.kind and l.concurrency_key = job.concurrency_key
        )
        returning queue
    )
    select array_agg(c.queue) into _queues from called as c;
    perform jobq_private.wake(array(
        select distinct w.queue
        from unnest(
            _queues || job.queue || jobq_private.waiting_queues(array[job.queue], array[job.kind])
        ) as w (queue)
    ));
end
$$;
