-- Purpose: declare a kind of job, or replace what is declared of it; null means the
-- queue's setting, else the global default.
-- Invariant: one row, last writer wins, but with a version the newest; jobs that exist keep what
-- they were made with, but for the backoff. An endpoint is declared by put_endpoint() alone: the
-- row is written first, so that one which comes at the same time is seen.
-- Raises: 22004, 22023, 42501, JQ004, JQ006, JQ007.
-- Argument queue: the queue of its jobs where the call names none.
-- Argument dedup: the strategy for jobs with a dedup_key: skip, enqueue, replace, debounce or
-- throttle.
-- Argument dedup_period: how long a job waits for another call (debounce), or how long a key makes no
-- other job (throttle); null means 10 s.
-- Argument dedup_max_wait: how long other calls may put a job off in all; null means for ever.
-- Argument concurrency_key: the path in the payload at which each job's concurrency key stands,
-- such as {customer_id}; a path that names nothing means no key.
-- Argument payload_schema: a JSON Schema that payloads must fit, of the keywords type,
-- required, properties, additionalProperties, items, enum (of 1000 values at most), minimum,
-- maximum, minLength, maxLength and pattern.
-- Argument key_max_running: how many of its jobs of each concurrency key run at once, in all queues, 1
-- to 32767; null means no limit.
-- Argument key_rate_limit: how many of its jobs of each key start in each key_rate_period, in all
-- queues; null means no limit.
-- Argument ordered: whether its jobs of each key run one at a time, and those behind one that is tried
-- again wait for it; between queues there is no order but that.
-- Argument on_dead: whether a key goes on when a job of an ordered kind is dead: continue, or hold
-- in its queue, until it is redriven or release_key() is called.
-- Argument run: a function, f(jsonb) returns jsonb, that work() calls for a job of this kind;
-- with its schema. One that is f(jsonb[]) returns jsonb[] is called for many jobs at a time, and
-- returns a result for each in their order. null means that workers have a handler.
-- Argument retry_on: after which errors of run a job is tried again: SQLSTATEs, or their classes
-- by two characters; null means {08,40,53,55,57}.
-- Argument keep_succeeded: how long its jobs are kept that succeeded, at most the global
-- retention, which null means. With 0 they leave no trace: neither job nor result, log and
-- failed attempts are kept.
-- Argument keep_dead: the same for dead jobs; at least 1 hour.
-- Argument keep_cancelled: the same for cancelled jobs; at least 1 hour.
-- Argument version: of the program that declares, a number that grows; nothing is changed where
-- the kind was declared by this version or a newer one. null replaces what any of them has declared, and
-- leaves the version, so that only a newer one undoes it.
-- Example: select jobq.put_kind('send_email', queue => 'mail', max_attempts => 3, timeout => '30 s');
create or replace function jobq.put_kind(
    kind text,
    queue text default null,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    lease interval default null,
    retry_preset text default null,
    retry_strategy text default null,
    retry_initial_delay interval default null,
    retry_max_delay interval default null,
    retry_jitter double precision default null,
    dedup text default null,
    reuse_key_after_failure boolean default null,
    payload_schema jsonb default null,
    run text default null,
    concurrency_key text[] default null,
    max_running integer default null,
    rate_limit integer default null,
    rate_period interval default null,
    rate_burst integer default null,
    dedup_period interval default null,
    dedup_max_wait interval default null,
    keep_succeeded interval default null,
    keep_dead interval default null,
    keep_cancelled interval default null,
    retry_on text[] default null,
    key_max_running integer default null,
    key_rate_limit integer default null,
    key_rate_period interval default null,
    key_rate_burst integer default null,
    ordered boolean default null,
    on_dead text default null,
    version bigint default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _before constant jsonb := (
        select to_jsonb(k) - 'kind' from jobq_private.kind as k where k.kind = put_kind.kind
    );
    _keep constant interval[] := array[
        put_kind.keep_succeeded, put_kind.keep_dead, put_kind.keep_cancelled
    ];
    _problem text;
begin
    _problem := coalesce(
        jobq_private.definition_problem(put_kind.payload_schema),
        jobq_private.schema_problem(put_kind.payload_schema, 'schema')
    );
    if put_kind.kind is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'kind');
    elsif _problem is not null then
        perform jobq_private.raise_error('SCHEMA_INVALID', _problem);
    end if;
    if exists (
        select from unnest(_keep) as k (keep), jobq_private.setting as g
        where k.keep > g.retention
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'jobs are kept no longer than the global retention'
        );
    end if;
    if put_kind.run is not null then
        perform jobq_private.check_sql_function(put_kind.run);
    end if;
    insert into jobq_private.kind as k (
        kind, queue, priority, max_attempts, timeout, lease, retry_preset, retry_strategy,
        retry_initial_delay, retry_max_delay, retry_jitter, dedup, reuse_key_after_failure,
        payload_schema, run, concurrency_key,
        max_running, rate_limit, rate_period, rate_burst, dedup_period, dedup_max_wait,
        keep, retry_on, key_max_running, key_rate_limit, key_rate_period, key_rate_burst,
        ordered, on_dead, version
    )
    values (
        put_kind.kind, put_kind.queue, put_kind.priority, put_kind.max_attempts,
        put_kind.timeout, put_kind.lease, put_kind.retry_preset, put_kind.retry_strategy,
        put_kind.retry_initial_delay, put_kind.retry_max_delay, put_kind.retry_jitter,
        put_kind.dedup, put_kind.reuse_key_after_failure, put_kind.payload_schema,
        put_kind.run, put_kind.concurrency_key,
        put_kind.max_running, put_kind.rate_limit, put_kind.rate_period,
        put_kind.rate_burst,
        put_kind.dedup_period, put_kind.dedup_max_wait,
        case when num_nonnulls(variadic _keep) > 0 then _keep end, put_kind.retry_on,
        put_kind.key_max_running, put_kind.key_rate_limit, put_kind.key_rate_period,
        put_kind.key_rate_burst, put_kind.ordered, put_kind.on_dead,
        put_kind.version
    )
    on conflict on constraint kind_pkey do update
    set
        queue = excluded.queue, priority = excluded.priority,
        max_attempts = excluded.max_attempts, timeout = excluded.timeout,
        lease = excluded.lease, retry_preset = excluded.retry_preset,
        retry_strategy = excluded.retry_strategy,
        retry_initial_delay = excluded.retry_initial_delay,
        retry_max_delay = excluded.retry_max_delay, retry_jitter = excluded.retry_jitter,
        dedup = excluded.dedup, reuse_key_after_failure = excluded.reuse_key_after_failure,
        payload_schema = excluded.payload_schema, run = excluded.run,
        concurrency_key = excluded.concurrency_key,
        max_running = excluded.max_running, rate_limit = excluded.rate_limit,
        rate_period = excluded.rate_period, rate_burst = excluded.rate_burst,
        dedup_period = excluded.dedup_period, dedup_max_wait = excluded.dedup_max_wait,
        keep = excluded.keep, retry_on = excluded.retry_on,
        key_max_running = excluded.key_max_running,
        key_rate_limit = excluded.key_rate_limit,
        key_rate_period = excluded.key_rate_period,
        key_rate_burst = excluded.key_rate_burst, ordered = excluded.ordered,
        on_dead = excluded.on_dead,
        version = coalesce(excluded.version, k.version), updated_at = now()
    where excluded.version is null or k.version is null or excluded.version > k.version;
    if found and exists (
        select from jobq_private.endpoint as e where e.endpoint = put_kind.kind
    ) then
        perform jobq_private.raise_error('IS_ENDPOINT', format('kind %s', put_kind.kind));
    end if;
    perform jobq_private.audit_settings('put_kind', put_kind.kind, _before, (
        select to_jsonb(k) - 'kind' from jobq_private.kind as k where k.kind = put_kind.kind
    ));
exception
    when check_violation or foreign_key_violation or numeric_value_out_of_range then
        get stacked diagnostics _problem = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.kind', _problem);
end
$$;

revoke all on function jobq.put_kind from public;
grant execute on function jobq.put_kind to jobq_operator, jobq_worker;

comment on function jobq.put_kind is
'Declares a kind of job: its queue, limits, retries, dedup, retention and the schema of its payload.';
