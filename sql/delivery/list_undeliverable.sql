-- Purpose: Returns the endpoints that a worker cannot deliver because it lacks a driver or a key.
-- Invariant: uses the present versions, not older ones. Raises: 22004.
-- Argument drivers: the types that the worker can deliver: HTTP, KAFKA, REDIS_STREAM.
-- Argument key_ids: the ids of the worker's encryption keys.
-- Returns: one row per endpoint, by name.
-- Column secret: the first secret without a key; null if a driver is missing.
-- Example: select endpoint, type, secret from jobq_internal.list_undeliverable('{HTTP}', '{}');
create or replace function jobq_internal.list_undeliverable(drivers text[], key_ids text[])
returns table (endpoint text, type text, secret text, key_id text) language sql stable
security definer set search_path = pg_catalog, pg_temp as $$
    select jobq_private.check_given('drivers or key_ids', num_nulls(drivers, key_ids));
    select distinct on (e.endpoint) e.endpoint, e.type, s.name, s.key_id
    from jobq_private.endpoint as e
    left join (
        jobq_private.endpoint_definition as r
        join jobq_private.definition as s on s.type = r.type and s.name = r.name
    ) on r.endpoint = e.endpoint
        and r.is_current
        and r.type = 'secret'
        and e.type = any(list_undeliverable.drivers)
        and s.key_id <> all(list_undeliverable.key_ids)
    where s.name is not null or e.type <> all(list_undeliverable.drivers)
    order by e.endpoint, s.name
$$;
grant execute on function jobq_internal.list_undeliverable to jobq_worker, jobq_operator;
