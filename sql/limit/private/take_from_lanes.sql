-- Purpose: of each of these lanes, its next due jobs and the places that they get; with the lanes
-- in which there was none, or that may not start one; and, for a caller that starts all of these
-- jobs and then looks for more, those that have no more.
-- Invariant: the caller holds the lanes' locks, and the limits of those with a rate or an order. One
-- job of each lane while there are lanes for all that is wanted (what is locked beyond that is
-- left); else equal shares. No more than its bounds say, null for what the queue
-- says of each key. Hot: its caller pins the search path, and that no plan is made for a call.
-- Raises: nothing.
create or replace function jobq_private.take_from_lanes(
    lanes jobq_private.lane[], max_running integer, bounds jobq_private.lane_bounds,
    now timestamptz, wanted integer, needs_places boolean, takes_all boolean
)
returns jobq_private.lane_batch
language plpgsql
as $$
declare
    _share constant integer := case cardinality(lanes)
        when least(wanted, 100) then 1
        else ceil(wanted::numeric / cardinality(lanes))
    end;
    _default constant integer := case when needs_places then 32767 end;
    _max_running constant integer[] := bounds.max_running;
    _starts constant integer[] := bounds.starts;
    _heads constant uuid[] := bounds.heads;
    _lefts constant numeric[] := bounds.lefts;
    _batch jobq_private.lane_batch;
begin
    with tried as materialized (
        select l.ordinality as n, p.places, jobq_private.affordable(array(
            select j.ctid
            from jobq_private.job as j
            where j.lane_id = l.lane_id
            and j.priority = l.priority
            and j.state in ('queued', 'retrying')
            and j.run_at <= take_from_lanes.now
            and (_heads[l.ordinality] is null or j.job_id = _heads[l.ordinality])
            order by j.run_at, j.job_id
            limit least(
                _share, _starts[l.ordinality],
                case when m.max_running is not null then coalesce(cardinality(p.places), 0) end
            )
            for update skip locked
        ), _starts[l.ordinality], _lefts[l.ordinality]) as jobs
        from unnest(take_from_lanes.lanes) with ordinality as l
        cross join lateral (
            select coalesce(
                case
                    when _starts is not null then _max_running[l.ordinality]
                    when l.concurrency_key is not null then take_from_lanes.max_running
                end,
                _default
            ) as max_running
            offset 0
        ) as m
        cross join lateral jobq_private.free_places(
            l.queue, l.lane_id, m.max_running, _share
        ) as p (places)
    ),
    taken as materialized (
        select u.job, t.places[u.k] as place
        from tried as t
        cross join lateral unnest(t.jobs) with ordinality as u (job, k)
        order by u.k, t.n
        limit wanted
    )
    select
        coalesce((select array_agg(t.job) from taken as t), '{}'),
        (select array_agg(t.place) from taken as t),
        array(
            select take_from_lanes.lanes[t.n]
            from tried as t
            where t.jobs = '{}'
            or takes_all and cardinality(t.jobs) < _share
            and (select count(*) from taken as k) < wanted
        )
    into _batch;
    return _batch;
end
$$;
