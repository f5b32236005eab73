-- Purpose: lock dead or cancelled jobs and return them to the live ones: blocked if they must
-- wait again. A job whose idempotency key or dedup key belongs to another job stays.
-- Invariant: the attempt keeps counting, as a fencing token must; failed attempts no longer count
-- against max_attempts, and the job does not expire again. It counts as awaited.
create or replace function jobq_private.redrive_jobs(
    job_ids uuid[], finished_ats timestamptz[], latest boolean default false,
    target text default 'queued'
)
returns setof uuid language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_bitmapscan = off set enable_nestloop = off
set enable_mergejoin = off as $$
declare
    _of_parents constant text[] := '{PARENT_FAILED,PARENT_GONE}'::text[];
    _first constant timestamptz := (select min(f) from unnest(finished_ats) as f);
    _last constant timestamptz := (select max(f) from unnest(finished_ats) as f);
    _free constant uuid[] := jobq_private.take_redrivable(job_ids, finished_ats);
    _waiting constant uuid[] := jobq_private.on_redrive(_free);
    _back uuid[];
    _queues text[];
begin
    with back as (
        insert into jobq_private.job (
            run_at, uncounted, state, previous_state, is_awaited, waits_since, transition_slot,
            delivery_version, last_error_code, last_error,
            -- columns of jobq_private.job but due_at, expires_at, expiries, claimed_at, heartbeat_at,
            -- lease_expires_at, cancel_requested_at, cancel_reason, worker, slot, reported_cost, progress:
            job_id, created_at, slot_at, lease, timeout, schedule_id, attempt, max_attempts, priority, region,
            queue, kind, key_id, concurrency_key, cost, batch_id, idempotency_key, dedup_key, dedup,
            last_error_details, keep, metadata, payload
            -- end
        )
        select
            now(), a.attempt,
            case when a.job_id in (select unnest(_waiting)) then 'blocked' else target end, a.state, true, clock_timestamp(), pg_backend_pid() & 1023,
            case
                when not redrive_jobs.latest then a.delivery_version
                else (select k.delivery_version from jobq_private.kind as k where k.kind = a.kind)
            end,
            case when a.last_error_code <> all(_of_parents) then a.last_error_code end,
            case when a.last_error_code <> all(_of_parents) then a.last_error end,
            -- the same of a:
            a.job_id, a.created_at, a.slot_at, a.lease, a.timeout, a.schedule_id, a.attempt, a.max_attempts,
            a.priority, a.region, a.queue, a.kind, a.key_id, a.concurrency_key, a.cost, a.batch_id,
            a.idempotency_key, a.dedup_key, a.dedup, a.last_error_details, a.keep, a.metadata, a.payload
            -- end
        from unnest(redrive_jobs.job_ids, redrive_jobs.finished_ats) as c (job_id, finished_at)
        join jobq_private.job_archive as a
            on a.job_id = any(redrive_jobs.job_ids) and a.job_id = c.job_id
            and a.finished_at = c.finished_at and a.finished_at between _first and _last
        where a.job_id in (select f from unnest(_free) as f)
        order by a.kind, a.dedup_key, a.job_id
        on conflict (kind, dedup_key, (
            case when dedup is null or (dedup = 'debounce' and attempt > 0) then job_id end
        ))
        where dedup_key is not null do nothing
        returning job_id, queue
    )
    select array_agg(b.job_id), array_agg(distinct b.queue order by b.queue)
    into _back, _queues
    from back as b;

    delete from jobq_private.job_archive as a
    using unnest(redrive_jobs.job_ids, redrive_jobs.finished_ats) as c (job_id, finished_at)
    where a.job_id = any(redrive_jobs.job_ids) and a.job_id = c.job_id
    and a.finished_at = c.finished_at and a.finished_at between _first and _last
    and a.job_id in (select b from unnest(_back) as b);
    perform jobq_private.on_move(_free);  -- those that stay too
    if _back is null then
        return;
    end if;
    insert into jobq_private.audit (action, subject)
    select 'redrive', b.job_id::text from unnest(_back) as b (job_id);
    perform jobq_private.wake(_queues);
    return query select b.job_id from unnest(_back) as b (job_id);
end
$$;
