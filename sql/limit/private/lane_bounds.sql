-- Purpose: what holds for each of these lanes now: how many jobs may run, how many may start by its
-- rate, zero while it is held, what its budget has left, and of an ordered one the job that waits again, so that no other may start.
-- Invariant: exact for who holds the limits of those with a rate or an order, or of a kind. Raises: nothing.
create or replace function jobq_private.lane_bounds(
    lanes jobq_private.lane[], now timestamptz
)
returns jobq_private.lane_bounds
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _bounds jobq_private.lane_bounds;
begin
    select
        array_agg(
            jobq_private.lane_max_running(r, l.queue, l.concurrency_key, l.kind)
            order by l.ordinality
        ),
        array_agg(
            case
                when h.held_until > lane_bounds.now then 0
                else jobq_private.rate_left(
                    g.level, g.charged_at, r.spacing, r.burst, lane_bounds.now
                )
            end
            order by l.ordinality
        ),
        array_agg(j.job_id order by l.ordinality),
        array_agg(
            jobq_private.budget_left(r.budget, g.spent, g.charged_at, lane_bounds.now)
            order by l.ordinality
        )
    into _bounds
    from unnest(lane_bounds.lanes) with ordinality as l
    cross join lateral jobq_private.lane_rule(l.queue, l.concurrency_key, l.kind) as r
    left join jobq_private.limit_state as g
        on g.limit_id = jobq_private.lane_limit_id(l.lane_id, l.concurrency_key, l.kind)
    -- a key is held in its queue
    left join jobq_private.limit_state as h on h.limit_id = case
        when l.kind is null then l.lane_id
        else jobq_private.lane_id(l.queue, l.concurrency_key)
    end
    left join jobq_private.job as j
        on r.is_ordered and j.job_id = g.head_job_id
        and (j.lane_id = l.lane_id or j.kind = l.kind);
    return _bounds;
end
$$;
