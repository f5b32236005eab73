-- Purpose: of each of these lanes, its next due jobs and the places that they get; with the
-- lanes in which there was none, or that may not start one.
-- Invariant: the caller holds the lanes' locks, and the gates of those with a rate or an order.
-- One job of each lane while there are lanes for all that is wanted, else equal shares. Where an
-- ordered lane's last job waits again, or that of an ordered kind (heads), no other may start. Places are told below zero, as the
-- trigger takes them from a claim. Raises: nothing.
create or replace function jobq_private.take_from_lanes(
    lanes jobq_private.lane[], now timestamptz, wanted integer, needs_places boolean,
    heads uuid[]
)
returns jobq_private.lane_batch
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _share constant integer := case cardinality(lanes)
        when least(wanted, 100) then 1
        else ceil(wanted::numeric / cardinality(lanes))
    end;
    _batch jobq_private.lane_batch;
begin
    with tried as materialized (
        select l.ordinality as n, p.places, array(
            select j.ctid
            from jobq_private.job as j
            where j.queue = l.queue
            and j.lane_id = l.lane_id
            and j.priority = l.priority
            and j.state in ('queued', 'retrying')
            and j.run_at <= take_from_lanes.now
            and (h.job_id is null or j.job_id = h.job_id)
            order by j.run_at, j.job_id
            limit least(
                _share,
                case when g.held_until > take_from_lanes.now then 0 end,
                jobq_private.tokens(
                    g.passed_until, r.spacing, r.burst, take_from_lanes.now
                ),
                case
                    when needs_places or r.max_running is not null
                    then coalesce(cardinality(p.places), 0)
                end
            )
            for update skip locked
        ) as jobs
        from unnest(take_from_lanes.lanes) with ordinality as l
        cross join lateral jobq_private.lane_rule(l.queue, l.concurrency_key) as r
        cross join lateral jobq_private.free_places(
            l.queue, l.lane_id,
            coalesce(r.max_running, case when needs_places then 32767 end), _share
        ) as p (places)
        left join jobq_private.gate as g on g.gate_id = l.lane_id
        left join jobq_private.job as h
            on h.job_id = case
                when r.is_ordered then g.head_job_id else heads[l.ordinality]
            end
            and h.lane_id = l.lane_id
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
        (select array_agg(coalesce(-t.place, 0)) from taken as t),
        array(select take_from_lanes.lanes[t.n] from tried as t where t.jobs = '{}')
    into _batch;
    return _batch;
end
$$;

revoke all on function jobq_private.take_from_lanes from public;

comment on function jobq_private.take_from_lanes is
'The next due jobs of lanes, with the places that they get.';
