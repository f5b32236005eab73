-- Purpose: what these limits let start now, in their order. slots: how many jobs more
-- may run; rate_left and budget_left: for what cost; each null for any. room: how many
-- jobs if each costs 1. opens_at: when that changes by itself. head_job_id: the only
-- job that may start in an ordered key.
-- Invariant: exact for a caller that has locked the limits, because it counts rows.
-- After a job did not fit into a budget, nothing fits until the period ends, the budget
-- grows, or maintain() asks again: so cheap jobs do not overtake a dear one for ever. A
-- key of a kind is held in its queue.
create or replace function jobq_private.limit_rooms(scopes jobq_private.scope[], now timestamptz)
returns table (
    n bigint, limit_id uuid, queue text, kind text, concurrency_key text, room integer,
    slots integer, rate_left integer, budget_left numeric, opens_at timestamptz,
    rate_opens_at timestamptz, budget_end timestamptz, head_job_id uuid, held_until timestamptz,
    hold_reason text, rule jobq_private.limit_rule
)
language plpgsql
stable
parallel safe
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
    return query
    select
        s.n, s.limit_id, s.queue, s.kind, s.concurrency_key,
        case
            when h.held_until > limit_rooms.now or t.is_spent then 0
            else least(c.slots, t.rate_left)
        end,
        c.slots, t.rate_left, t.budget_left,
        greatest(
            case when h.held_until > limit_rooms.now then h.held_until end, t.rate_opens_at,
            case when t.is_spent then t.budget_end end
        ),
        t.rate_opens_at, t.budget_end, j.job_id, h.held_until, h.hold_reason,
        r::jobq_private.limit_rule
    from unnest(limit_rooms.scopes)
        with ordinality as s (limit_id, queue, kind, concurrency_key, n)
    cross join lateral jobq_private.limit_rule(s.queue, s.kind, s.concurrency_key) as r
    left join jobq_private.limit_state as g on g.limit_id = s.limit_id
    left join jobq_private.limit_state as h on h.limit_id = case
        when s.kind is null then s.limit_id
        when s.queue is not null then jobq_private.limit_id(
            s.queue, case when s.concurrency_key is null then s.kind end, s.concurrency_key
        )
    end
    left join jobq_private.job as j
        on r.is_ordered and j.job_id = g.head_job_id and j.key_id = s.limit_id
    cross join lateral (
        select
            -- a millionth of a unit is rounding
            case
                when b.rate_left is not null then greatest(0, floor(b.rate_left + 1e-6))::integer
            end as rate_left,
            case
                when floor(b.rate_left + 1e-6) <= 0 then limit_rooms.now
                    + interval '1 us' * (1 + least(1e15, (1 - b.rate_left) * r.spacing))
            end as rate_opens_at,
            b.budget_left, b.budget_end,
            b.budget_left < 0
            or b.budget_left is not null and g.full_until > limit_rooms.now as is_spent
        from (
            select
                r.burst - jobq_private.level(
                    g.level, g.charged_at, r.spacing, limit_rooms.now
                ) as rate_left,
                (r.budget).amount - jobq_private.budget_spent(
                    r.budget, g.spent, g.charged_at, limit_rooms.now
                ) as budget_left,
                jobq_private.budget_end(r.budget, limit_rooms.now) as budget_end
        ) as b
    ) as t
    cross join lateral (
        select greatest(0, r.max_running - o.jobs)::integer as slots
        from jobq_private.count_running(s.limit_id, s.queue, s.kind, s.concurrency_key) as o (jobs)
        where r.max_running is not null
        union all
        select null where r.max_running is null
    ) as c
    order by s.n;
end
$$;
