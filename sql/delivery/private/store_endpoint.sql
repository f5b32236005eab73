-- Purpose: store a checked endpoint with its secrets, and the limits of its kind.
-- Invariant: called under the lock of begin_definition(), after its kind.
-- pin_delivery() creates its version, which includes its retries and queue.
-- Raises: nothing of its own.
create or replace function jobq_private.store_endpoint(
    endpoint text, type text, spec jsonb, payload_spec text, config text,
    max_concurrency integer, max_per_second double precision
)
returns void
language plpgsql
as $$
begin
    insert into jobq_private.endpoint (
        endpoint, type, payload_spec, config, spec, max_concurrency, max_per_second,
        version
    )
    values (
        store_endpoint.endpoint, store_endpoint.type, store_endpoint.payload_spec,
        store_endpoint.config, store_endpoint.spec, store_endpoint.max_concurrency,
        store_endpoint.max_per_second, 0
    )
    on conflict on constraint endpoint_pkey do update
    set
        type = excluded.type, payload_spec = excluded.payload_spec,
        config = excluded.config, spec = excluded.spec,
        max_concurrency = excluded.max_concurrency,
        max_per_second = excluded.max_per_second;
    update jobq_private.kind as k
    set
        max_running = store_endpoint.max_concurrency, rate_limit = r.rate_limit,
        rate_period = r.rate_period, rate_burst = r.rate_burst
    from jobq_private.endpoint_rate(store_endpoint.max_per_second) as r
    where k.kind = store_endpoint.endpoint
    and num_nonnulls(store_endpoint.max_concurrency, store_endpoint.max_per_second) > 0;
    delete from jobq_private.endpoint_secret as s
    where s.endpoint = store_endpoint.endpoint;
    insert into jobq_private.endpoint_secret (endpoint, secret)
    select distinct store_endpoint.endpoint, r.path
    from jobq_private.template_references(store_endpoint.spec) as r
    where r.namespace = 'secret';
end
$$;
