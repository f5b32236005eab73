-- Purpose: Stores jobs that another shard has sent, each once. Only for jobq_owner.
-- Invariant: each arrives once, however often it is sent. It keeps its id, keys, times and
-- attempts. A delivery gets the version of the endpoint that this shard has.
-- Raises: 22004, 22023, JQ002.
-- Argument jobs: an array of what send_jobs() returned.
-- Returns: how many had not arrived before.
-- Example: select jobq_internal.receive_jobs('[]');
create or replace function jobq_internal.receive_jobs(jobs jsonb)
returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _arrived uuid[];
    _queues text[];
begin
    perform jobq_private.check_given('jobs', num_nulls(receive_jobs.jobs));
    perform jobq_private.check_argument(case
        when jsonb_typeof(receive_jobs.jobs) <> 'array' or exists (
            select from jsonb_array_elements(receive_jobs.jobs) as a (job)
            where (a.job ->> 'job_id' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$') is not true
            or (a.job ->> 'moves' ~ '^[0-9]{1,9}$') is not true
        )
        then 'jobs must be what send_jobs returned'
    end);
    with arrived as (
        insert into jobq_private.moved_job as m (job_id, moves, job)
        select (a.job ->> 'job_id')::uuid, (a.job ->> 'moves')::integer, a.job
        from jsonb_array_elements(receive_jobs.jobs) as a (job)
        on conflict on constraint moved_job_pkey do update
        set moves = excluded.moves, shard_id = null, job = excluded.job,
            moved_at = excluded.moved_at
        where m.moves < excluded.moves
        returning m.job_id
    )
    select array_agg(a.job_id) into _arrived from arrived as a;
    if _arrived is null then
        return 0;
    end if;
    insert into jobq_private.idempotency_key (kind, idempotency_key, job_id, created_at)
    select
        m.job ->> 'kind', m.job ->> 'idempotency_key', m.job_id,
        (m.job ->> 'key_created_at')::timestamptz
    from jobq_private.moved_job as m
    where m.job_id = any(_arrived) and m.job ->> 'key_created_at' is not null
    on conflict on constraint idempotency_key_pkey do nothing;
    with stored as (
        insert into jobq_private.job (
            state, previous_state, transition_slot, key_id, delivery_version,
            -- columns of jobq_private.job but due_at, claimed_at, heartbeat_at, lease_expires_at,
            -- worker, slot, reported_cost:
            job_id, created_at, run_at, cancel_requested_at, slot_at, expires_at, waits_since, lease, timeout,
            schedule_id, attempt, uncounted, max_attempts, expiries, priority, is_awaited, region, queue,
            kind, concurrency_key, cost, batch_id, idempotency_key, dedup_key, dedup, cancel_reason,
            last_error_code, last_error, last_error_details, keep, metadata, progress, payload
            -- end
        )
        select
            r.state, r.previous_state, pg_backend_pid() & 1023,
            jobq_private.key_of(r.queue, r.kind, r.concurrency_key, r.key_id is not null),
            case when r.delivery_version is not null then (
                select k.delivery_version from jobq_private.kind as k where k.kind = r.kind
            ) end,
            -- the same of r:
            r.job_id, r.created_at, r.run_at, r.cancel_requested_at, r.slot_at, r.expires_at, r.waits_since,
            r.lease, r.timeout, r.schedule_id, r.attempt, r.uncounted, r.max_attempts, r.expiries, r.priority,
            r.is_awaited, r.region, r.queue, r.kind, r.concurrency_key, r.cost, r.batch_id, r.idempotency_key,
            r.dedup_key, r.dedup, r.cancel_reason, r.last_error_code, r.last_error, r.last_error_details,
            r.keep, r.metadata, r.progress, r.payload
            -- end
        from jobq_private.moved_job as m
        cross join lateral jsonb_populate_record(null::jobq_private.job, m.job) as r
        where m.job_id = any(_arrived)
        returning queue
    )
    select array_agg(distinct s.queue) into _queues from stored as s;
    update jobq_private.moved_job as m set job = null where m.job_id = any(_arrived);
    perform jobq_private.open_keys(_arrived);
    perform jobq_private.wake(_queues);
    return cardinality(_arrived);
end
$$;
