-- Purpose: what holds for each of these lanes now: how many jobs may run, how many may start by its
-- rate, zero while it is held, and which waits again, so that no other may start: the last of an ordered
-- lane, or that of an ordered kind (heads).
-- Invariant: exact for who holds the gates of those with a rate or an order. Raises: nothing.
create or replace function jobq_private.lane_bounds(
    lanes jobq_private.lane[], heads uuid[], now timestamptz
)
returns jobq_private.lane_bounds
language plpgsql
stable
parallel safe
security invoker
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
        array_agg(r.max_running order by l.ordinality),
        array_agg(
            case
                when g.held_until > lane_bounds.now then 0
                else jobq_private.tokens(
                    g.passed_until, r.spacing, r.burst, lane_bounds.now
                )
            end
            order by l.ordinality
        ),
        array_agg(h.job_id order by l.ordinality)
    into _bounds
    from unnest(lane_bounds.lanes) with ordinality as l
    cross join lateral jobq_private.lane_rule(l.queue, l.concurrency_key) as r
    left join jobq_private.gate as g on g.gate_id = l.lane_id
    left join jobq_private.job as h
        on h.job_id = case
            when r.is_ordered then g.head_job_id else lane_bounds.heads[l.ordinality]
        end
        and h.lane_id = l.lane_id;
    return _bounds;
end
$$;

revoke all on function jobq_private.lane_bounds from public;

comment on function jobq_private.lane_bounds is
'What holds for each of these lanes now.';
