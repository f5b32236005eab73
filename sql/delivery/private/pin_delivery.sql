-- Purpose: store a version of an endpoint (the endpoint, its payload spec and its
-- retries), which jobs enqueued from now on will use.
-- Invariant: jobs take the number from the row of kind that also has their schema, so
-- both match regardless of concurrent commits. Without an endpoint, creates no version.
-- Called under the lock of begin_definition(). The endpoint's limits are those of its
-- kind.
create or replace function jobq_private.pin_delivery(endpoint text)
returns void
language plpgsql
as $$
declare
    _version integer;
    _document jsonb;
begin
    select jobq_private.record_version('endpoint', e.endpoint, jsonb_build_object(
        'type', e.type, 'spec', e.spec, 'payload_spec', e.payload_spec,
        'config', e.config, 'max_concurrency', e.max_concurrency,
        'max_per_second', e.max_per_second, 'queue', k.queue,
        'retry_policy', jobq_private.retry_document(k)
    ))
    into _version
    from jobq_private.endpoint as e
    join jobq_private.kind as k on k.kind = e.endpoint
    where e.endpoint = pin_delivery.endpoint;
    update jobq_private.endpoint as e
    set version = _version, updated_at = now()
    where e.endpoint = pin_delivery.endpoint and e.version <> _version;

    _document := (
        select jsonb_build_object(
            'endpoint_version', e.version, 'type', e.type, 'spec', e.spec,
            'config', e.config, 'payload_spec', e.payload_spec,
            'payload_spec_version', p.version, 'max_concurrency', e.max_concurrency,
            'max_per_second', e.max_per_second, 'retry', jsonb_build_object(
                'strategy', k.retry_strategy, 'initial_delay', k.retry_initial_delay,
                'max_delay', k.retry_max_delay, 'jitter', k.retry_jitter
            )
        )
        from jobq_private.endpoint as e
        join jobq_private.kind as k on k.kind = e.endpoint
        left join jobq_private.payload_spec as p on p.payload_spec = e.payload_spec
        where e.endpoint = pin_delivery.endpoint
    );
    update jobq_private.kind as k
    set delivery_version = jobq_private.record_version(
        'delivery', pin_delivery.endpoint, _document
    )
    where k.kind = pin_delivery.endpoint and _document is not null;
    insert into jobq_private.kind_retry (
        kind, version, strategy, initial_delay, max_delay, jitter
    )
    select
        k.kind, k.delivery_version, k.retry_strategy, k.retry_initial_delay, k.retry_max_delay,
        k.retry_jitter
    from jobq_private.kind as k
    where k.kind = pin_delivery.endpoint and k.delivery_version is not null
    on conflict on constraint kind_retry_pkey do nothing;

    update jobq_private.kind as k
    set
        max_running = coalesce(e.max_concurrency, k.max_running),
        rate_limit = coalesce(r.rate_limit, k.rate_limit),
        rate_period = coalesce(r.rate_period, k.rate_period),
        rate_burst = coalesce(r.rate_burst, k.rate_burst)
    from jobq_private.endpoint as e
    cross join lateral jobq_private.endpoint_rate(e.max_per_second) as r
    where e.endpoint = pin_delivery.endpoint
    and k.kind = e.endpoint
    and num_nonnulls(e.max_concurrency, e.max_per_second) > 0;

    insert into jobq_private.pinned_definition (endpoint, type, name)
    select pin_delivery.endpoint, t.type, _document ->> t.type
    from unnest('{payload_spec,config}'::text[]) as t (type)
    where _document ->> t.type is not null
    on conflict do nothing;
end
$$;
