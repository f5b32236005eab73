-- Purpose: Declares a kind: its queue, limits, retries, dedup, retention and payload schema.
-- Invariant: replaces all of the declaration: null means the queue's setting, else the global
-- default. The last writer wins, with a version the newest. Existing jobs keep their settings,
-- except the backoff, and max_attempts if the kind was not declared when they were made.
-- put_endpoint() declares endpoints; the row is locked before it is checked, so one that comes at
-- the same time is seen. Raises: 22004, 22023, 42501, JQ004, JQ006, JQ007.
-- Argument queue: the default queue of its jobs.
-- Argument dedup_key: path of the dedup key in the payload, such as {user_id}; several paths as
-- {{user_id},{day}}; {} means the whole payload. Jobs without these members have no key.
-- Argument dedup: the strategy for jobs with a dedup_key: skip, enqueue, replace, debounce or
-- throttle.
-- Argument concurrency_key: path of the concurrency key in the payload, such as {customer_id};
-- jobs without this member have no key. Refused if payload_schema does not allow the member.
-- Argument cost: path of the cost in the payload, a number, such as {tokens}; jobs without this
-- member cost 1.
-- Argument dead_letter_kind: kind of the job that is enqueued when a job dies, with job_id, kind,
-- queue, payload, metadata, error_code, error and attempts of the dead one in its payload.
-- Argument version: increasing version of the declaring program; if this or a newer version has
-- declared the kind, nothing changes. null replaces any declaration and keeps its version, so
-- that only a newer one replaces it again.
-- Example: select jobq.put_kind('send_email', queue => 'mail', max_attempts => 3, timeout => '30 s');
create or replace function jobq.put_kind(
    kind text, queue text default null, priority integer default null,
    max_attempts integer default null, timeout interval default null, lease interval default null,
    retry_preset text default null, retry_strategy text default null,
    retry_initial_delay interval default null, retry_max_delay interval default null,
    retry_jitter double precision default null, dedup text default null,
    reuse_key_after_failure boolean default null, payload_schema jsonb default null,
    run text default null, concurrency_key text[] default null, max_running integer default null,
    rate_limit integer default null, rate_period interval default null,
    rate_burst integer default null, dedup_period interval default null,
    dedup_max_wait interval default null, keep_succeeded interval default null,
    keep_dead interval default null, keep_cancelled interval default null,
    retry_on text[] default null, key_max_running integer default null,
    key_rate_limit integer default null, key_rate_period interval default null,
    key_rate_burst integer default null, ordered boolean default null, on_dead text default null,
    version bigint default null, cost text[] default null, dedup_key text[] default null,
    dead_letter_kind text default null
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _before constant jsonb := (
        select to_jsonb(k) - 'kind' from jobq_private.kind as k where k.kind = put_kind.kind
    );
    _keep constant interval[] := array[
        put_kind.keep_succeeded, put_kind.keep_dead, put_kind.keep_cancelled
    ];
    _problem text;
begin
    perform jobq_private.check_given('kind', num_nulls(put_kind.kind));
    perform jobq_private.check_argument(case
        when put_kind.version < 1 then 'version must be at least 1'
        when (select max(k) from unnest(_keep) as k)
            > (select g.retention from jobq_private.setting as g)
        then 'a kind cannot keep jobs longer than the global retention'
    end);
    -- Row security checks the queue, and triggers check the other columns, also if the update does
    -- nothing because a newer version has declared the kind.
    insert into jobq_private.kind as k (
        kind, queue, run, payload_schema, concurrency_key, cost, dedup_key
    )
    values (
        put_kind.kind, put_kind.queue, put_kind.run, put_kind.payload_schema,
        put_kind.concurrency_key, put_kind.cost, put_kind.dedup_key
    )
    on conflict on constraint kind_pkey do nothing;
    update jobq_private.kind as k
    set
        queue = put_kind.queue, priority = put_kind.priority,
        max_attempts = put_kind.max_attempts, timeout = put_kind.timeout,
        lease = put_kind.lease, retry_preset = put_kind.retry_preset,
        retry_strategy = put_kind.retry_strategy,
        retry_initial_delay = put_kind.retry_initial_delay,
        retry_max_delay = put_kind.retry_max_delay,
        retry_jitter = put_kind.retry_jitter, dedup = put_kind.dedup,
        dedup_key = put_kind.dedup_key, dead_letter_kind = put_kind.dead_letter_kind,
        dedup_period = put_kind.dedup_period, dedup_max_wait = put_kind.dedup_max_wait,
        reuse_key_after_failure = put_kind.reuse_key_after_failure,
        payload_schema = put_kind.payload_schema, run = put_kind.run,
        retry_on = put_kind.retry_on, concurrency_key = put_kind.concurrency_key,
        max_running = put_kind.max_running, rate_limit = put_kind.rate_limit,
        rate_period = put_kind.rate_period, rate_burst = put_kind.rate_burst,
        key_max_running = put_kind.key_max_running,
        key_rate_limit = put_kind.key_rate_limit,
        key_rate_period = put_kind.key_rate_period,
        key_rate_burst = put_kind.key_rate_burst, ordered = put_kind.ordered,
        on_dead = put_kind.on_dead, cost = put_kind.cost,
        keep = case when num_nonnulls(variadic _keep) > 0 then _keep end,
        version = coalesce(put_kind.version, k.version), updated_at = now()
    where k.kind = put_kind.kind
    and coalesce(put_kind.version > k.version, true);
    perform jobq_private.check_problem('IS_ENDPOINT', (
        select format('kind %s', k.kind) from jobq_private.kind as k
        where found and k.kind = put_kind.kind and k.delivery_version is not null
    ));
    perform jobq_private.audit_settings('put_kind', put_kind.kind, _before, (
        select to_jsonb(k) - 'kind' from jobq_private.kind as k where k.kind = put_kind.kind
    ));
exception
    when check_violation or foreign_key_violation or numeric_value_out_of_range then
        get stacked diagnostics _problem = constraint_name;
        perform jobq_private.refuse_setting(_problem);
    when insufficient_privilege then
        -- of row security, unless it has a code
        get stacked diagnostics _problem = constraint_name;
        perform jobq_private.check_problem('ALL_QUEUES_NEEDED', case
            when _problem = '' then 'kind ' || put_kind.kind
        end);
        raise;
end
$$;
grant execute on function jobq.put_kind to jobq_operator, jobq_worker;
