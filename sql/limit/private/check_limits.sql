-- Purpose: for each of these limits, the nth: the number of free slots, the cost that rate and
-- budget still allow (null for any), how many jobs of cost 1 may start, when that changes by
-- itself, and the only job that may start in an ordered key. Inlined if the arguments are
-- variables, so no SET clause.
-- Invariant: exact for a caller that has locked the limits, because it counts rows. Cheaper jobs
-- wait behind one that did not fit into a budget, as long as a claim finds that job again every
-- 10 s.
create or replace function jobq_private.check_limits(scopes jobq_private.scope[], now timestamptz)
returns table (
    n bigint, limit_id uuid, queue text, kind text, concurrency_key text, max_starts integer,
    slots integer, used_slots smallint[], rate_left integer, budget_left numeric,
    opens_at timestamptz, rate_opens_at timestamptz, first_job_id uuid, held_until timestamptz,
    hold_reason text, max_running integer, is_ordered boolean, budget jobq_private.budget,
    spent numeric, period_end timestamptz, is_charged boolean
)
language sql stable as $$
    with uncounted as materialized (
        select w.* from jobq_private.running_without_slot() as w
    )
    select
        s.n, s.limit_id, s.queue, s.kind, s.concurrency_key,
        case when h.held_until is null and not t.is_spent then least(c.slots, t.rate_left) else 0 end,
        c.slots, o.slots, t.rate_left, t.budget_left,
        greatest(
            h.held_until, t.rate_opens_at,
            case when t.is_spent then least(s.period_end, s.next_until) end
        ),
        t.rate_opens_at, j.job_id, h.held_until, h.reason, s.max_running, s.is_ordered, s.budget,
        s.spent, s.period_end, s.is_charged
    from jobq_private.limit_usage(check_limits.scopes, check_limits.now) as s
    left join lateral (
        select h.held_until, h.reason
        from jobq_private.limit_hold as h
        where h.held_until > check_limits.now
        and h.limit_id = case
            when s.kind is null then s.limit_id
            when s.queue is not null then jobq_private.limit_id(
                s.queue, case when s.concurrency_key is null then s.kind end, s.concurrency_key
            )
        end
        order by h.held_until desc, h.hold_id desc
        limit 1
    ) as h on true
    left join lateral (
        select j.job_id
        from jobq_private.job as j
        where s.is_ordered
        and j.job_id = s.first_job_id and j.key_id = s.limit_id and j.state <> 'blocked'
        limit 1  -- or all jobs might be read, for a hash
    ) as j on true
    cross join lateral (
        select
            -- a millionth of a unit is rounding
            case
                when s.rate is not null then greatest(0, floor(s.burst - s.rate_used + 1e-6))::integer
            end as rate_left,
            case
                when floor(s.burst - s.rate_used + 1e-6) <= 0 then check_limits.now
                    + interval '1 us' * (1 + least(1e15, (1 - s.burst + s.rate_used) / s.rate * 1e6))
            end as rate_opens_at,
            (s.budget).amount - s.spent as budget_left,
            coalesce((s.budget).amount - s.spent < coalesce(s.next_cost, 0), false) as is_spent
    ) as t
    cross join lateral jobq_private.used_slots(
        s.limit_id, s.queue, s.kind, s.concurrency_key, s.max_running
    ) as o
    cross join lateral (
        select case when s.max_running is not null then greatest(
            0, s.max_running - cardinality(o.slots)
            - case when exists (table uncounted) then (
                select count(*)
                from uncounted as r
                where coalesce(r.kind = s.kind, r.queue = s.queue) and (
                    s.concurrency_key is null
                    or r.concurrency_key = s.concurrency_key
                    and (s.kind is not null or r.key_id = s.limit_id)
                )
            ) else 0 end
        )::integer end as slots
        offset 0
    ) as c
$$;
