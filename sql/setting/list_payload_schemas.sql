-- Purpose: Returns the JSON Schemas of kinds that only clients can check.
-- Raises: nothing.
-- Column schema: the JSON Schema; kinds without one have no row.
-- Example: select * from jobq_internal.list_payload_schemas('{send_email}');
create or replace function jobq_internal.list_payload_schemas(kinds text[])
returns table (kind text, schema jsonb) language sql stable parallel safe security definer
set search_path = pg_catalog, pg_temp as $$
    select k.kind, k.json_schema
    from jobq_private.kind as k
    where k.kind = any(list_payload_schemas.kinds) and k.json_schema is not null
$$;
grant execute on function jobq_internal.list_payload_schemas to jobq_producer, jobq_operator;
