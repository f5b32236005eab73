-- Purpose: store a version of an endpoint (the endpoint, its payload spec and its
-- retries), which jobs enqueued from now on will use, and the limits of its kind.
-- Invariant: jobs take the number from the row of kind that also has their schema, so
-- both match regardless of concurrent commits. Called under the lock of
-- begin_definition(). The schema is stored where it can be enforced: for
-- schema_violation(), else as a JSON Schema for the extension pg_jsonschema, clients and
-- deliveries. \b, \B and options have other meanings in PostgreSQL than in clients.
create or replace function jobq_private.pin_delivery(endpoint text)
returns void language plpgsql set standard_conforming_strings = on as $$
declare
    _endpoint jobq_private.endpoint;
    _kind jobq_private.kind;
    _spec jobq_private.definition;
    _shared jsonb;
    _is_plain boolean;
begin
    select e.* into _endpoint
    from jobq_private.endpoint as e
    where e.endpoint = pin_delivery.endpoint;
    select k.* into _kind from jobq_private.kind as k where k.kind = pin_delivery.endpoint;
    select d.* into _spec
    from jobq_private.definition as d
    where d.type = 'payload_spec' and d.name = _endpoint.payload_spec;
    _shared := jsonb_build_object(
        'type', _endpoint.type, 'spec', _endpoint.spec, 'config', _endpoint.config,
        'payload_spec', _endpoint.payload_spec, 'max_concurrency', _endpoint.max_concurrency,
        'max_per_second', _endpoint.max_per_second
    );
    _endpoint.version := jobq_private.record_version(
        'endpoint', pin_delivery.endpoint, _shared || jsonb_build_object(
            'queue', _kind.queue, 'retry_policy', jobq_private.retry_document(_kind)
        )
    );
    update jobq_private.endpoint as e
    set version = _endpoint.version, updated_at = now()
    where e.endpoint = pin_delivery.endpoint and e.version <> _endpoint.version;

    _is_plain := jobq_private.schema_problem(_spec.document, '') is null
        and not _spec.document @? '$.**.pattern ? (@ like_regex "[\\\\][bB]|[(][?][^:]")';
    update jobq_private.kind as k
    set
        payload_schema = case when _is_plain then _spec.document end,
        json_schema = case when not _is_plain then _spec.document end,
        max_running = _endpoint.max_concurrency, rate_limit = r.rate_limit,
        rate_period = r.rate_period, rate_burst = r.rate_burst,
        delivery_version = jobq_private.record_version(
            'delivery', pin_delivery.endpoint, _shared || jsonb_build_object(
                'endpoint_version', _endpoint.version, 'payload_spec_version', _spec.version
            )
        )
    from jobq_private.endpoint_rate(_endpoint.max_per_second) as r
    where k.kind = pin_delivery.endpoint
    returning k.* into _kind;
    insert into jobq_private.kind_retry (
        kind, version, strategy, initial_delay, max_delay, jitter
    )
    values (
        _kind.kind, _kind.delivery_version, _kind.retry_strategy, _kind.retry_initial_delay,
        _kind.retry_max_delay, _kind.retry_jitter
    )
    on conflict on constraint kind_retry_pkey do nothing;
    update jobq_private.endpoint_definition as r
    set is_current = false
    where r.endpoint = pin_delivery.endpoint;
    insert into jobq_private.endpoint_definition (endpoint, type, name)
    select pin_delivery.endpoint, d.type, d.name
    from (
        values ('payload_spec', _endpoint.payload_spec), ('config', _endpoint.config)
        union
        select r.namespace, r.path
        from jobq_private.template_references(_endpoint.spec) as r
        where r.namespace = 'secret'
    ) as d (type, name)
    where d.name is not null
    on conflict on constraint endpoint_definition_pkey do update set is_current = true;
end
$$;
