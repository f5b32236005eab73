-- Purpose: Creates or replaces a config: values for the templates of endpoints.
-- Invariant: attempts that start later use it. Refuses to remove a value that an endpoint uses,
-- or an older version with waiting jobs. Raises: 22004, 22023, 42501, JQ004, JQ007.
-- Never: PAYLOAD_SPEC_NOT_FOUND, SECRET_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Returns: the config as show_definition() returns it.
-- Example: select jobq.put_config('email-service', '{"api_base_url": "https://api.example.org"}');
create or replace function jobq.put_config(config text, entries jsonb, mode text default 'put')
returns json language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.begin_definition('config', put_config.config, put_config.mode);
    perform jobq_private.check_argument(case
        when jsonb_typeof(put_config.entries) is distinct from 'object'
        then 'entries must be an object'
        else 'entries: ' || jobq_private.definition_problem(put_config.entries)
    end);
    perform jobq_private.check_references(e.endpoint, e.spec, put_config.entries)
    from jobq_private.endpoint as e
    where e.config = put_config.config;
    perform jobq_private.check_problem(
        'TEMPLATE_RESOLUTION_FAILED',
        jobq_private.needed_by_jobs('config', put_config.config, put_config.entries)
    );
    return jobq_private.store_definition('config', put_config.config, put_config.entries);
end
$$;
grant execute on function jobq.put_config to jobq_operator;
