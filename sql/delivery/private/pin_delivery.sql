-- Purpose: store a version of an endpoint (the endpoint, its payload spec and its
-- retries), which jobs enqueued from now on will use.
-- Invariant: jobs take the number from the row of kind that also has their schema, so
-- both match regardless of concurrent commits. Called under the lock of
-- begin_definition(). The schema is stored where it can be enforced: for
-- schema_violation(), else as a JSON Schema for the extension pg_jsonschema, clients and
-- deliveries. \b, \B and options have other meanings in PostgreSQL than in clients.
create or replace function jobq_private.pin_delivery(endpoint text)
returns void
language plpgsql
set standard_conforming_strings = on
as $$
declare
    _endpoint jobq_private.endpoint;
    _kind jobq_private.kind;
    _spec jobq_private.payload_spec;
    _shared jsonb;
    _is_plain boolean;
begin
    select e.* into _endpoint
    from jobq_private.endpoint as e
    where e.endpoint = pin_delivery.endpoint;
    select k.* into _kind from jobq_private.kind as k where k.kind = pin_delivery.endpoint;
    select p.* into _spec
    from jobq_private.payload_spec as p
    where p.payload_spec = _endpoint.payload_spec;
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

    _is_plain := jobq_private.schema_problem(_spec.schema, '') is null
        and not _spec.schema @? '$.**.pattern ? (@ like_regex "[\\\\][bB]|[(][?][^:]")';
    update jobq_private.kind as k
    set
        payload_schema = case when _is_plain then _spec.schema end,
        json_schema = case when not _is_plain then _spec.schema end,
        delivery_version = jobq_private.record_version(
            'delivery', pin_delivery.endpoint, _shared || jsonb_build_object(
                'endpoint_version', _endpoint.version, 'payload_spec_version', _spec.version,
                'retry', jsonb_build_object(
                    'strategy', _kind.retry_strategy, 'initial_delay', _kind.retry_initial_delay,
                    'max_delay', _kind.retry_max_delay, 'jitter', _kind.retry_jitter
                )
            )
        )
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
    insert into jobq_private.pinned_definition (endpoint, type, name)
    select pin_delivery.endpoint, t.type, t.name
    from (
        values ('payload_spec', _endpoint.payload_spec), ('config', _endpoint.config)
    ) as t (type, name)
    where t.name is not null
    on conflict do nothing;
end
$$;
