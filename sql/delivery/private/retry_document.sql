-- Purpose: the retries of an endpoint in the form of its document.
-- Invariant: reads only its argument.
create or replace function jobq_private.retry_document(kind jobq_private.kind)
returns jsonb language sql immutable set search_path = pg_catalog, pg_temp as $$
    select jsonb_build_object(
        'max_attempts', (kind).max_attempts,
        'backoff', (kind).retry_strategy,
        'initial_delay_ms', jobq_private.milliseconds((kind).retry_initial_delay),
        'max_delay_ms', jobq_private.milliseconds((kind).retry_max_delay),
        'jitter', (kind).retry_jitter
    )
$$;
