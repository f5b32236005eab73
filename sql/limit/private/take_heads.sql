-- Purpose: take_from_lanes() where no job of these lanes runs: the next due job of each, in place 1 where
-- a limit counts what runs: for lanes with a key max_running, for all places.
-- Invariant: as take_from_lanes(). Raises: nothing.
create or replace function jobq_private.take_heads(
    lanes jobq_private.lane[], max_running integer, now timestamptz, wanted integer, places integer
)
returns jobq_private.lane_batch
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _batch jobq_private.lane_batch;
    _none bigint[];
begin
    select
        coalesce(array_agg(t.job) filter (where t.job is not null), '{}'),
        array_agg(t.place) filter (where t.job is not null),
        array_agg(t.n) filter (where t.job is null)
    into _batch.jobs, _batch.places, _none
    from (
        select
            l.ordinality as n,
            case
                when take_heads.places is not null
                or take_heads.max_running is not null and l.concurrency_key is not null
                then 1::smallint
            end as place,
            (
                select j.ctid
                from jobq_private.job as j
                where j.lane_id = l.lane_id
                and j.priority = l.priority
                and j.state in ('queued', 'retrying')
                and j.run_at <= take_heads.now
                order by j.run_at, j.job_id
                limit 1
                for update skip locked
            ) as job
        from unnest(take_heads.lanes) with ordinality as l
        offset 0
    ) as t;
    _batch.jobs := _batch.jobs[1:wanted];
    _batch.places := _batch.places[1:wanted];
    _batch.idle := array(select take_heads.lanes[u.n] from unnest(_none) as u (n));
    return _batch;
end
$$;
