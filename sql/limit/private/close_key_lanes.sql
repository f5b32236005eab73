-- Purpose: close lanes of a queue whose next jobs are of kinds that may start no more of their keys;
-- returns how many are closed now, or may start one after all.
-- Invariant: as close_lanes(), by the locks of the lane and of the key's gate: the end of a job may make
-- room in other queues too. open_at says of a full one from when the job waits, so that
-- who adds one that goes before it calls. Raises: nothing.
create or replace function jobq_private.close_key_lanes(
    queue text, priority integer, lanes jobq_private.barred_lane[]
)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _mine uuid[];
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        return 0;
    end if;
    _mine := array(
        select b.lane_id
        from unnest(close_key_lanes.lanes) as b
        where pg_try_advisory_xact_lock(_closing, jobq_private.lane_slot(b.lane_id))
        and pg_try_advisory_xact_lock(_closing, jobq_private.lane_slot(
            jobq_private.key_gate_id(b.kind, b.concurrency_key)
        ))
    );
    perform jobq_private.pull_back(
        jobq_private.key_gate_id(b.kind, b.concurrency_key), r.spacing, r.burst, clock_timestamp()
    )
    from unnest(close_key_lanes.lanes) as b
    cross join lateral jobq_private.key_rule(b.kind) as r
    where r.spacing is not null;
    with found as materialized (
        select
            b.lane_id, b.lane_id = any (_mine) as is_mine,
            jobq_private.key_gate_id(b.kind, b.concurrency_key) as gate_id,
            case when r.room = 0 then r.open_at when h.queue = close_key_lanes.queue then h.run_at end
                as open_at,
            case when r.room = 0 then r.open_at is null else h.queue <> close_key_lanes.queue end
                as is_full,
            (
                select j.run_at
                from jobq_private.job as j
                where j.queue = close_key_lanes.queue
                and j.lane_id = b.lane_id
                and j.priority = close_key_lanes.priority
                and j.state in ('queued', 'retrying')
                order by j.run_at
                limit 1
            ) as run_at
        from unnest(close_key_lanes.lanes) as b
        cross join (select clock_timestamp()) as n (now)
        cross join lateral jobq_private.key_room(b.kind, b.concurrency_key, n.now) as r
        left join jobq_private.job as h on h.job_id = r.head_job_id
        where r.room = 0 or h.queue <> close_key_lanes.queue or h.run_at > n.now
    )
    update jobq_private.lane as l
    set
        state = case when f.is_mine and f.is_full then 'full' else 'later' end,
        open_at = case
            when not f.is_mine then clock_timestamp() + interval '5 ms'
            when f.is_full then coalesce(f.run_at, '-infinity')
            else f.open_at
        end,
        gate_id = null,
        key_gate_id = f.gate_id
    from found as f
    where l.lane_id = f.lane_id
    and l.priority = close_key_lanes.priority
    and l.queue = close_key_lanes.queue;
    return cardinality(close_key_lanes.lanes);
end
$$;

revoke all on function jobq_private.close_key_lanes from public;

comment on function jobq_private.close_key_lanes is
'Closes lanes whose next jobs are of kinds that may start no more of their keys.';
