-- Purpose: close lanes in which a claim has found nothing: as full, until their next job is due, or
-- for good; returns how many were closed.
-- Invariant: the caller holds the rows' locks, and those of their limits. The protocol of call_lane(): only under the exclusive lock,
-- and after another look under it; while somebody holds the lock who may be about to add work or
-- room, the lane is only put off. A repeatable snapshot closes none. Hot: its caller pins the
-- search path, and that no plan is made for a call. Raises: nothing.
create or replace function jobq_private.close_lanes(
    lanes jobq_private.lane[]
)
returns bigint
language plpgsql
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _mine uuid[];
    _closed bigint;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        return 0;
    end if;
    if close_lanes.lanes = '{}' then
        return 0;
    end if;
    _mine := array(
        select l.lane_id
        from unnest(close_lanes.lanes) as l
        where pg_try_advisory_xact_lock(
            _closing, jobq_private.closing_slot(l.lane_id, l.concurrency_key)
        )
    );
    with found as materialized (
        select
            l.lane_id, l.priority, t.open_at,
            case
                when l.lane_id <> all (_mine) then 'busy'
                when w.run_at is null then 'empty'
                when t.open_at > n.now then 'later'
                when p.places = '{}' or h.priority <> l.priority or h.queue <> l.queue
                then 'full'
                else 'busy'
            end as state
        from unnest(close_lanes.lanes) with ordinality as l
        cross join (select clock_timestamp()) as n (now)
        cross join lateral jobq_private.lane_rule(l.queue, l.concurrency_key, l.kind) as r
        cross join lateral jobq_private.free_places(
            l.queue, l.lane_id,
            jobq_private.lane_max_running(r, l.queue, l.concurrency_key, l.kind), 1
        ) as p (places)
        left join jobq_private.limit_state as g
            on g.limit_id = jobq_private.lane_limit_id(l.lane_id, l.concurrency_key, l.kind)
        left join jobq_private.limit_state as o on o.limit_id = case
            when l.kind is null then l.lane_id
            else jobq_private.lane_id(l.queue, l.concurrency_key)
        end
        left join jobq_private.job as h
            on r.is_ordered and h.job_id = g.head_job_id
            and (h.lane_id = l.lane_id or h.kind = l.kind) and h.state <> 'running'
        left join lateral (
            select j.run_at, coalesce(j.cost, 1) as cost
            from jobq_private.job as j
            where j.lane_id = l.lane_id
            and j.priority = l.priority
            and j.state in ('queued', 'retrying')
            order by j.run_at, j.job_id
            limit 1
        ) as w on true
        cross join lateral (
            select greatest(
                case
                    when h.priority = l.priority and h.queue = l.queue then h.run_at
                    else w.run_at
                end,
                o.held_until,
                jobq_private.rate_opens_at(g.level, g.charged_at, r.spacing, r.burst, n.now),
                case
                    when coalesce(h.cost, w.cost)
                        > jobq_private.budget_left(r.budget, g.spent, g.charged_at, n.now)
                    then jobq_private.budget_end(r.budget, n.now)
                end
            )
        ) as t (open_at)
    ),
    gone as (
        delete from jobq_private.lane as l
        using found as f
        where f.state = 'empty' and l.lane_id = f.lane_id and l.priority = f.priority
        returning l.lane_id
    ),
    closed as (
        update jobq_private.lane as l
        set
            state = case f.state when 'full' then 'full' else 'later' end,
            open_at = case f.state
                when 'busy' then clock_timestamp() + interval '5 ms'
                when 'full' then '-infinity'
                else f.open_at
            end
        from found as f
        where f.state <> 'empty' and l.lane_id = f.lane_id and l.priority = f.priority
        returning l.lane_id
    )
    select (select count(*) from gone as g) + (select count(*) from closed as c)
    into _closed;
    return _closed;
end
$$;
