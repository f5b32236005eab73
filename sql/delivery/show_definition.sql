-- Purpose: Returns a payload spec, config, secret (without its value) or endpoint as a document.
-- Invariant: contains no value of a secret. Raises: 22004, 22023, JQ007.
-- Argument type: payload_spec, config, secret or endpoint.
-- Returns: a JSON object: name, version, created_at and updated_at; of a payload spec
-- schema, of a config values, of an endpoint type, spec, payload_spec, config, queue,
-- max_concurrency, max_per_second, paused_at, pause_reason and retry_policy (max_attempts,
-- backoff, initial_delay_ms, max_delay_ms, jitter).
-- Example: select jobq_internal.show_definition('endpoint', 'send-welcome');
create or replace function jobq_internal.show_definition(type text, name text)
returns json language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    _item json;
begin
    select d.item into _item
    from jobq_private.definition_document as d
    where d.type = show_definition.type and d.name = show_definition.name;
    if not found then
        perform jobq_private.refuse_definition(show_definition.type, show_definition.name);
    end if;
    return _item;
end
$$;
grant execute on function jobq_internal.show_definition to jobq_operator, jobq_reader;
