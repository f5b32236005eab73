-- Purpose: add one job to a queue, in the caller's transaction.
-- Invariant: the job exists when the caller's transaction commits, and not otherwise; an
-- idempotency key or dedup key that is taken yields the job that holds it.
-- Inside: a job without keys and what waits for others, of a kind and queue without limits, goes in by
-- a path of its own, which resolves what settings_for() does, and passes what new_job_problem() surely
-- does. It is the cheaper the fewer functions and operators a job meets: PostgreSQL looks at the
-- privileges for each of an expression when a transaction first comes to that. Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
-- Argument queue: the queue; null means the kind's, else default.
-- Argument priority: higher ones are claimed first, -32768 to 32767; null takes the
-- setting.
-- Argument max_attempts: after how many failed attempts it is dead, 1 to 10000; null
-- takes the setting.
-- Argument timeout: how long an attempt may run, 1 ms to 365 days; null takes the
-- setting.
-- Argument run_at: not before this instant; null means now.
-- Argument expires_at: no attempt begins after this instant: the job is then dead, with the
-- code EXPIRED; after run_at, null for never.
-- Argument after: the jobs that it waits for, live or ended; until then it is blocked.
-- Argument after_failure: when one of them is dead or cancelled: cancel (it is cancelled
-- too), wait (it waits until that one is redriven) or run (it runs when all have ended,
-- however); null means cancel.
-- Argument batch_id: the batch that it becomes a member of, which has not ended.
-- Returns: the id of the job: the new one, or the one that holds the key already.
-- Example: select jobq.enqueue('send_email', '{"to": "ada@example.org"}', run_at => now() + interval '1 h');
create or replace function jobq.enqueue(
    kind text,
    payload jsonb default '{}',
    queue text default null,
    run_at timestamptz default null,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    idempotency_key text default null,
    dedup_key text default null,
    dedup text default null,
    metadata jsonb default null,
    concurrency_key text default null,
    expires_at timestamptz default null,
    after uuid[] default null,
    after_failure text default null,
    batch_id uuid default null
)
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _job_id uuid;
    _queue text;
    _priority smallint;
    _is_late boolean;
    _of_kind jobq_private.kind;
    _of_queue jobq_private.queue;
    _is_told boolean;
begin
    <<plain>>
    begin
        if num_nonnulls(
            enqueue.run_at, enqueue.priority, enqueue.max_attempts, enqueue.timeout,
            enqueue.idempotency_key, enqueue.dedup_key, enqueue.dedup, enqueue.metadata,
            enqueue.concurrency_key, enqueue.expires_at, enqueue.after,
            enqueue.after_failure, enqueue.batch_id
        ) > 0 then
            exit plain when num_nonnulls(
                enqueue.idempotency_key, enqueue.dedup_key, enqueue.dedup,
                enqueue.concurrency_key, enqueue.expires_at, enqueue.after,
                enqueue.after_failure, enqueue.batch_id
            ) > 0;
            exit plain when not jobq_private.are_usual(
                enqueue.run_at, enqueue.priority, enqueue.max_attempts, enqueue.timeout,
                enqueue.metadata
            );
            _priority := enqueue.priority;
            _is_late := enqueue.run_at >= now() + interval '60 s';
        end if;
        if (
            pg_column_size(enqueue.payload) <= 600
            and octet_length(enqueue.payload::text)
                <= least(308, 2 * (jobq_private.defaults()).max_payload_depth)
        ) is not true
        then
            exit plain when jobq_private.is_sound(enqueue.payload) is not true;
        end if;
        exit plain when (
            octet_length(enqueue.kind || coalesce(enqueue.queue, '')) <= 128
            and least(enqueue.kind collate "C", enqueue.queue) > '*'
        ) is not true;
        if jobq_private.has_kind_rules() then
            _of_kind := k from jobq_private.kind as k where k.kind = enqueue.kind;
            exit plain when num_nonnulls(
                _of_kind.payload_schema, _of_kind.json_schema, _of_kind.concurrency_key,
                _of_kind.max_running, _of_kind.rate_limit
            ) > 0;
        end if;
        _queue := coalesce(enqueue.queue, _of_kind.queue, 'default');
        if jobq_private.has_queue_rules() then
            _of_queue := q from jobq_private.queue as q where q.queue = _queue;
            exit plain when _of_queue.max_depth is not null;
        end if;
        _job_id := jobq_private.new_id();
        insert into jobq_private.job (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            metadata, delivery_version, keep
        )
        values (
            _job_id, enqueue.kind, enqueue.payload, _queue,
            coalesce(enqueue.run_at, current_timestamp),
            coalesce(
                _priority, _of_kind.priority, _of_queue.priority,
                (jobq_private.defaults()).priority::smallint
            ),
            coalesce(
                enqueue.max_attempts, _of_kind.max_attempts, _of_queue.max_attempts,
                (jobq_private.defaults()).max_attempts
            ),
            coalesce(
                enqueue.timeout, _of_kind.timeout, _of_queue.timeout,
                (jobq_private.defaults()).timeout
            ),
            coalesce(_of_kind.lease, _of_queue.lease, (jobq_private.defaults()).lease),
            coalesce(enqueue.metadata, '{}'), _of_kind.delivery_version, _of_kind.keep
        );
        if _is_late is not true and jobq_private.announce(_queue) then
            _is_told := jobq_private.notify_queue(_queue);
        end if;
        return _job_id;
    end plain;
    return (jobq_private.store_job(row(
        1, enqueue.kind, enqueue.payload, enqueue.queue, enqueue.run_at, enqueue.priority,
        enqueue.max_attempts, enqueue.timeout, enqueue.idempotency_key, enqueue.dedup_key,
        enqueue.dedup, enqueue.metadata, null, null, enqueue.concurrency_key,
        enqueue.expires_at,
        enqueue.after, enqueue.after_failure, enqueue.batch_id, null, null
    )::jobq_private.new_job)).job_id;
end
$$;

revoke all on function jobq.enqueue from public;
grant execute on function jobq.enqueue to jobq_producer;

comment on function jobq.enqueue is
'Adds a job in the caller''s transaction and returns its id, or the id of the job that already holds its key.';
