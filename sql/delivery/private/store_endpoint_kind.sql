-- Purpose: store the kind of an endpoint: its queue and its retries, nothing else.
-- Invariant: called under the lock of begin_definition(), so endpoints do not change
-- meanwhile. Does not change a kind that is not an endpoint's, even one created
-- concurrently.
-- Raises: 22023, JQ004.
create or replace function jobq_private.store_endpoint_kind(
    endpoint text, queue text, max_attempts integer, timeout interval,
    retry_strategy text, retry_initial_delay interval, retry_max_delay interval,
    retry_jitter double precision
)
returns void
language plpgsql
as $$
declare
    _violated text;
begin
    insert into jobq_private.kind as k (
        kind, queue, max_attempts, timeout, retry_strategy, retry_initial_delay,
        retry_max_delay, retry_jitter
    )
    values (
        store_endpoint_kind.endpoint, store_endpoint_kind.queue,
        store_endpoint_kind.max_attempts, store_endpoint_kind.timeout,
        store_endpoint_kind.retry_strategy, store_endpoint_kind.retry_initial_delay,
        store_endpoint_kind.retry_max_delay, store_endpoint_kind.retry_jitter
    )
    on conflict on constraint kind_pkey do update
    set
        queue = excluded.queue, max_attempts = excluded.max_attempts,
        timeout = excluded.timeout, retry_strategy = excluded.retry_strategy,
        retry_initial_delay = excluded.retry_initial_delay,
        retry_max_delay = excluded.retry_max_delay, retry_jitter = excluded.retry_jitter,
        max_running = null, rate_limit = null, rate_period = null, rate_burst = null,
        updated_at = now()
    where exists (select from jobq_private.endpoint as e where e.endpoint = k.kind);
    if not found then
        perform jobq_private.raise_error('KIND_EXISTS', format(
            'kind %s', store_endpoint_kind.endpoint
        ));
    end if;
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
end
$$;
