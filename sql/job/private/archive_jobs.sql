-- Purpose: end live jobs in a final state and move them into the archive, in one statement. Jobs
-- that leave no trace (keep is 0) are deleted instead. Returns the positions, from 1, of the jobs
-- that moved; null for none.
-- Invariant: the archive's foreign key checks each change. A running job moves only by the
-- attempt that holds its lease; a waiting job not as succeeded, unless by a raw update. Jobs
-- locked by others are waited for, or skipped if skip_locked. Raises: 23503.
create or replace function jobq_private.archive_jobs(
    job_ids uuid[], attempts integer[], state text, results jsonb default null,
    skip_locked boolean default false
)
returns bigint[] language plpgsql
-- Only the primary key can serve the delete, whatever the statistics say, and a merge join locks the
-- jobs in the order of their ids, as every batch does, so that batches cannot deadlock.
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off
set enable_bitmapscan = off set enable_hashjoin = off set enable_nestloop = off
set enable_mergejoin = on as $$
declare
    _final constant integer := array_position('{succeeded,dead,cancelled}', archive_jobs.state);
    _moved bigint[];
    _endings jobq_private.ending[];
begin
    with ended as (
        delete from jobq_private.job as j
        using unnest(job_ids, attempts) with ordinality as s (settled_id, settled_attempt, position)
        where j.job_id = any(job_ids)
        -- Where xmax is neither 0 nor xmin, another transaction may have locked the job.
        and (not skip_locked or j.xmax in ('0', j.xmin) or jobq_private.lock_job(j.ctid))
        and j.job_id = s.settled_id and j.attempt = s.settled_attempt
        and (j.lease_expires_at is not null or archive_jobs.state in ('dead', 'cancelled', j.state))
        returning
            s.position,
            -- Read by the statement that has locked the archive: settled_at() relies on that. A
            -- clock that was put back ends no job before its id, from which get_job() looks for it.
            greatest(clock_timestamp(), j.created_at) as finished_at,
            -- What is not legal goes to the archive, whose foreign key refuses it.
            case when j.keep[_final] = '0' and not j.is_awaited and j.batch_id is null
                then (
                    coalesce(nullif(j.state, archive_jobs.state), j.previous_state),
                    archive_jobs.state
                ) in (select t.from_state, t.to_state from jobq_private.transition as t)
            end as is_gone,
            j.*
    ),
    stored as (
        insert into jobq_private.job_archive (
            state, previous_state, transition_slot, finished_at, result, prune_at,
            -- columns of jobq_private.job but due_at, lease_expires_at, slot, reported_cost, waits_since:
            job_id, created_at, run_at, claimed_at, heartbeat_at, cancel_requested_at, slot_at, expires_at,
            lease, timeout, schedule_id, attempt, uncounted, max_attempts, expiries, delivery_version,
            priority, is_awaited, region, queue, kind, key_id, concurrency_key, cost, batch_id, worker,
            idempotency_key, dedup_key, dedup, cancel_reason, last_error_code, last_error, last_error_details,
            keep, metadata, progress, payload
            -- end
        )
        select
            archive_jobs.state, coalesce(nullif(g.state, archive_jobs.state), g.previous_state),
            pg_backend_pid() & 1023, g.finished_at,
            nullif(results -> (g.position - 1)::integer, 'null'), g.finished_at + g.keep[_final],
            -- the same of g:
            g.job_id, g.created_at, g.run_at, g.claimed_at, g.heartbeat_at, g.cancel_requested_at, g.slot_at,
            g.expires_at, g.lease, g.timeout, g.schedule_id, g.attempt, g.uncounted, g.max_attempts,
            g.expiries, g.delivery_version, g.priority, g.is_awaited, g.region, g.queue, g.kind, g.key_id,
            g.concurrency_key, g.cost, g.batch_id, g.worker, g.idempotency_key, g.dedup_key, g.dedup,
            g.cancel_reason, g.last_error_code, g.last_error, g.last_error_details, g.keep, g.metadata,
            g.progress, g.payload
            -- end
        from ended as g
        where g.is_gone is not true
    )
    select array_agg(g.position), array_agg(row(
            g.job_id, g.attempt, archive_jobs.state, g.queue, g.kind, g.key_id, g.concurrency_key,
            g.slot, g.is_awaited, g.batch_id, coalesce(g.is_gone, false)
        )::jobq_private.ending)
        filter (where num_nonnulls(g.key_id, g.slot, g.batch_id) > 0 or g.is_awaited or g.is_gone)
    into _moved, _endings
    from ended as g;

    if _endings is not null then
        perform jobq_private.follow_endings(_endings);
    end if;
    -- Clients that wait for a job that did not move look at it as well.
    if jobq_private.is_locked('awaiting', 0) then
        perform jobq_private.tell_ended(archive_jobs.job_ids);
    end if;
    return _moved;
end
$$;
