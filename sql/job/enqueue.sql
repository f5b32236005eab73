-- Purpose: Adds a job in the caller's transaction and returns its id, or the id of the existing
-- job with the same key.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
-- Argument queue: the queue; null means the kind's, else default.
-- Argument expires_at: no attempt starts after this time, and the job is then dead with
-- EXPIRED; must be after run_at; null means never.
-- Argument after: jobs to wait for, live or ended; until then the job is blocked.
-- Argument batch_id: batch of the job, which must not have ended.
-- Argument cost: amount taken from rates and budgets, from 0 to 10^12; null means the value at
-- the kind's path in the payload, else 1.
-- Returns: the id of the new job, or of the existing job with the same key.
-- Example: select jobq.enqueue('send_email', '{"to": "ada@example.org"}', run_at => now() + interval '1 h');
create or replace function jobq.enqueue(
    kind text, payload jsonb default '{}', queue text default null,
    run_at timestamptz default null, priority integer default null,
    max_attempts integer default null, timeout interval default null,
    idempotency_key text default null, dedup_key text default null, dedup text default null,
    metadata jsonb default null, concurrency_key text default null,
    expires_at timestamptz default null, after uuid[] default null,
    after_failure text default null, batch_id uuid default null, cost numeric default null
)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan as $$
declare
    _job jobq_private.new_job;
    _job_id uuid;
    _queue text;
begin
    _job := row(
        1, enqueue.kind, enqueue.payload, enqueue.queue, enqueue.run_at, enqueue.priority,
        enqueue.max_attempts, enqueue.timeout, enqueue.idempotency_key, enqueue.dedup_key,
        enqueue.dedup, enqueue.metadata, null, null, enqueue.concurrency_key,
        enqueue.expires_at, enqueue.after, enqueue.after_failure, enqueue.batch_id, null, null,
        null, null, null, null, null, null, null, null, null, enqueue.cost
    );
    -- The short way of a plain job, in one statement: small payload, no keys, and its kind and queue
    -- ask for nothing. store_jobs() makes the same of it;
    -- tests/pgtap/job/columns.sql compares them.
    if num_nonnulls(
        enqueue.idempotency_key, enqueue.dedup_key, enqueue.dedup, enqueue.metadata,
        enqueue.concurrency_key, enqueue.expires_at, enqueue.after, enqueue.after_failure,
        enqueue.batch_id, enqueue.cost
    ) = 0 and (
        num_nonnulls(
            enqueue.run_at, enqueue.priority, enqueue.max_attempts, enqueue.timeout
        ) = 0 or jobq_private.invalid_option(_job) is null
    )
    then
        insert into jobq_private.job as j (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease, keep,
            delivery_version
        )
        select
            jobq_private.new_id(s.shard_id), enqueue.kind, enqueue.payload, s.queue,
            coalesce(enqueue.run_at, now()), coalesce(enqueue.priority, s.priority),
            coalesce(enqueue.max_attempts, s.max_attempts),
            coalesce(enqueue.timeout, s.timeout), s.lease, s.keep, s.delivery_version
        from jobq_private.settings_for(enqueue.kind, enqueue.queue) as s
        where length(enqueue.kind) between 1 and 128
        and length(s.queue) between 1 and 128 and right(s.queue, 1) <> '*'
        and jobq_private.is_small(enqueue.payload, s.max_payload_depth)
        and enqueue.payload is not null
        and not s.is_limited
        and num_nonnulls(
            s.payload_schema, s.json_schema, s.concurrency_key, s.max_depth, s.cost,
            s.dedup_key
        ) = 0
        returning j.job_id, j.queue into _job_id, _queue;
        if found then
            perform jobq_private.wake(array[_queue]);
            return _job_id;
        end if;
    end if;
    return (jobq_private.store_jobs(array[_job])).ids[1];
end
$$;
grant execute on function jobq.enqueue to jobq_producer;
