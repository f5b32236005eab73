-- Purpose: Creates or replaces an endpoint: a kind whose jobs are sent to HTTP, Kafka
-- or a Redis stream.
-- Invariant: the endpoint and its kind have the same name; refuses a kind that put_kind()
-- declared, and references to missing definitions. Existing jobs keep their version.
-- Raises: 22004, 22023, 42501, JQ004, JQ007.
-- Argument max_attempts: maximum number of failed deliveries, 1 to 10000.
-- Argument queue: the queue of its jobs; null means the default.
-- Argument max_concurrency: maximum concurrent deliveries over all workers, 1 to 10000; null
-- means 20 per worker.
-- Argument max_per_second: maximum deliveries per second over all workers, 0.001 to 1000000;
-- null means no limit.
-- Argument payload_spec: the payload spec of its jobs; null means any payload.
-- Argument config: the config of its templates; null means none.
-- Returns: the endpoint as show_definition() returns it.
-- Example: select jobq.put_endpoint('send-welcome', 'HTTP', '{"url": "{{config.api_base_url}}/welcome",
--     "body_template": {"user_id": "{{input.user_id}}"}}', config => 'email-service');
create or replace function jobq.put_endpoint(
    endpoint text, type text, spec jsonb, payload_spec text default null,
    config text default null, max_attempts integer default 1,
    retry_strategy text default 'exponential', retry_initial_delay interval default '1 s',
    retry_max_delay interval default '60 s', retry_jitter double precision default 0.25,
    queue text default null, max_concurrency integer default null,
    max_per_second double precision default null, mode text default 'put'
)
returns json language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _entries jsonb;
    _violated text;
begin
    perform jobq_private.begin_definition('endpoint', put_endpoint.endpoint,
        put_endpoint.mode);
    perform jobq_private.check_given('type or spec', num_nulls(put_endpoint.type, put_endpoint.spec));
    perform jobq_private.check_endpoint_spec(put_endpoint.type, put_endpoint.spec);
    perform jobq_private.check_problem('INVALID_PAYLOAD_SPEC_REF', case
        when not exists (
            select from jobq_private.definition as d
            where d.type = 'payload_spec' and d.name = put_endpoint.payload_spec
        ) then 'payload_spec ' || put_endpoint.payload_spec
    end);
    select d.document into _entries
    from jobq_private.definition as d
    where d.type = 'config' and d.name = put_endpoint.config;
    perform jobq_private.check_problem('INVALID_CONFIG_REF', case
        when not found then 'config ' || put_endpoint.config
    end);
    perform jobq_private.check_references(
        put_endpoint.endpoint, put_endpoint.spec, coalesce(_entries, '{}')
    );

    insert into jobq_private.kind as k (
        kind, queue, max_attempts, timeout, retry_strategy, retry_initial_delay,
        retry_max_delay, retry_jitter
    )
    values (
        put_endpoint.endpoint, put_endpoint.queue, put_endpoint.max_attempts,
        interval '10 s' + interval '1 ms' * coalesce(
            (put_endpoint.spec ->> 'timeout_ms')::numeric, 10000
        ),
        put_endpoint.retry_strategy, put_endpoint.retry_initial_delay,
        put_endpoint.retry_max_delay, put_endpoint.retry_jitter
    )
    on conflict on constraint kind_pkey do update
    set
        queue = excluded.queue, max_attempts = excluded.max_attempts,
        timeout = excluded.timeout, retry_strategy = excluded.retry_strategy,
        retry_initial_delay = excluded.retry_initial_delay,
        retry_max_delay = excluded.retry_max_delay, retry_jitter = excluded.retry_jitter,
        updated_at = now()
    where exists (select from jobq_private.endpoint as e where e.endpoint = k.kind);
    perform jobq_private.check_problem('KIND_EXISTS', case
        when not found then 'kind ' || put_endpoint.endpoint
    end);
    insert into jobq_private.endpoint (
        endpoint, type, payload_spec, config, spec, max_concurrency, max_per_second, version
    )
    values (
        put_endpoint.endpoint, put_endpoint.type, put_endpoint.payload_spec, put_endpoint.config,
        put_endpoint.spec, put_endpoint.max_concurrency, put_endpoint.max_per_second, 0
    )
    on conflict on constraint endpoint_pkey do update
    set
        type = excluded.type, payload_spec = excluded.payload_spec, config = excluded.config,
        spec = excluded.spec, max_concurrency = excluded.max_concurrency,
        max_per_second = excluded.max_per_second;
    perform jobq_private.pin_delivery(put_endpoint.endpoint);
    return jobq_internal.show_definition('endpoint', put_endpoint.endpoint);
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
        return null;
end
$$;
grant execute on function jobq.put_endpoint to jobq_operator;
