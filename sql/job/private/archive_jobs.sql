-- Purpose: move live jobs into the archive in a final state, as one statement; delete those
-- that succeed and leave no trace.
-- Invariant: only the attempt that holds the lease moves a running job, and only to be
-- cancelled does a job move that waits; the archive's foreign key refuses an illegal change,
-- and its check what is no success where the lane is null. The state is deliberately not
-- compared with 'running', and the ids stand as an array, so that only the primary key can
-- serve the delete, whatever the statistics say, in the order of ids that every batch uses.
-- What another transaction holds is waited for, or passed over where that is asked for.
-- The time is read by the statement that has locked the archive (ROW EXCLUSIVE), not before it:
-- listen_events() finds by that lock who may still add an earlier end.
-- Clients that wait for these jobs are told, also of those that did not move: they look.
-- Returns how many attempts moved, as of when, and which of them left no trace. Raises: 23503 for an illegal change.
create or replace function jobq_private.archive_jobs(
    job_ids uuid[], attempts integer[], state text, results jsonb, skip_held boolean,
    out moved integer, out finished_at timestamptz, out gone uuid[],
    out gone_attempts integer[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
declare
    _snapshot constant pg_snapshot := pg_current_snapshot();
    _open constant integer := age(pg_snapshot_xmin(_snapshot)::xid);
    _next constant xid8 := pg_snapshot_xmax(_snapshot);
    _self constant xid := pg_current_xact_id_if_assigned()::xid;
    _ending constant integer := array_position(
        '{succeeded,dead,cancelled}', archive_jobs.state
    );
    _queues text[];
    _lanes uuid[];
    _kinds text[];
    _keys text[];
    _endings jobq_private.ending[];
begin
    with clock as materialized (
        select clock_timestamp() as at
    ),
    ended as (
        delete from jobq_private.job as j
        using (
            select g.*
            from rows from (
                unnest(archive_jobs.job_ids, archive_jobs.attempts),
                jsonb_array_elements(archive_jobs.results)
            ) as g (job_id, attempt, result)
            order by g.job_id
        ) as f
        where j.job_id = any(archive_jobs.job_ids)
        and j.job_id = f.job_id
        and j.attempt = f.attempt
        and (
            j.lease_expires_at is not null
            or archive_jobs.state in (j.state, 'cancelled')
        )
        and (
            not archive_jobs.skip_held
            or age(j.xmax) > _open
            or j.xmax = _self
            or jobq_private.is_over(j.xmax, _next)
        )
        returning
            j.*, nullif(f.result, 'null') as result,
            j.lane_id is not null or j.place is not null as has_place,
            j.keep[_ending] = '0' and not j.is_awaited and j.batch_id is null as leaves_nothing
    ),
    stored as (
        insert into jobq_private.job_archive (
            job_id, created_at, run_at, claimed_at, heartbeat_at, cancel_requested_at,
            slot_at, lease, timeout, schedule_id, attempt, uncounted, max_attempts,
            expiries, priority, state, previous_state, region, queue, kind, worker,
            idempotency_key, dedup_key, dedup, cancel_reason, last_error_code,
            last_error, last_error_details, metadata, progress, payload, delivery_version,
            finished_at, result, lane_id, concurrency_key, lane, expires_at, keep, prune_at,
            is_awaited, batch_id
        )
        select
            g.job_id, g.created_at, g.run_at, g.claimed_at, g.heartbeat_at,
            g.cancel_requested_at, g.slot_at, g.lease, g.timeout, g.schedule_id,
            g.attempt, g.uncounted, g.max_attempts, g.expiries, g.priority,
            archive_jobs.state,
            case when g.state = archive_jobs.state then g.previous_state else g.state end,
            g.region, g.queue, g.kind, g.worker, g.idempotency_key, g.dedup_key, g.dedup,
            g.cancel_reason, g.last_error_code, g.last_error, g.last_error_details,
            g.metadata, g.progress, g.payload, g.delivery_version,
            c.at, g.result, g.lane_id, g.concurrency_key,
            case when archive_jobs.state <> 'succeeded' then pg_backend_pid() & 1023 end,
            g.expires_at, g.keep, c.at + g.keep[_ending], g.is_awaited, g.batch_id
        from ended as g
        cross join clock as c
        where g.leaves_nothing is not true
    )
    select
        count(*),
        (select c.at from clock as c),
        array_agg(g.queue) filter (where g.has_place),
        array_agg(g.lane_id) filter (where g.has_place),
        array_agg(g.kind) filter (where g.has_place),
        array_agg(g.concurrency_key) filter (where g.has_place),
        array_agg(g.job_id) filter (where g.leaves_nothing),
        array_agg(g.attempt) filter (where g.leaves_nothing),
        array_agg(
            row(g.queue, g.job_id, g.batch_id, g.is_awaited)::jobq_private.ending
        ) filter (where g.is_awaited or g.batch_id is not null)
    into
        archive_jobs.moved, archive_jobs.finished_at, _queues, _lanes, _kinds, _keys,
        archive_jobs.gone, archive_jobs.gone_attempts, _endings
    from ended as g;
    if archive_jobs.gone is not null then
        perform jobq_private.forget_traces(
            archive_jobs.gone, 1 < any(archive_jobs.gone_attempts)
        );
    end if;
    if _queues is not null then
        perform jobq_private.call_full_lanes(_queues, _lanes, _kinds, _keys);
    end if;
    if _endings is not null then
        perform jobq_private.leave_looks(_endings);
    end if;
    perform jobq_private.tell_ended(archive_jobs.job_ids);
end
$$;

revoke all on function jobq_private.archive_jobs from public;

comment on function jobq_private.archive_jobs is
'Moves live jobs into the archive in a final state.';
