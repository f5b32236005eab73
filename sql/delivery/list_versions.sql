-- Purpose: Returns the versions of a payload spec, config, secret or endpoint, newest first.
-- Invariant: for a secret, only the times of its changes. Raises: 22004, 22023, JQ007.
-- Argument type: payload_spec, config, secret or endpoint.
-- Column document: the definition; {} for a secret.
-- Example: select * from jobq_internal.list_versions('config', 'email-service');
create or replace function jobq_internal.list_versions(type text, name text)
returns table (version integer, document jsonb, created_at timestamptz) language plpgsql stable
security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    select
        v.version,
        case when v.type = 'secret' then '{}'::jsonb else v.document end,
        v.created_at
    from jobq_private.definition_version as v
    where v.type = list_versions.type and v.name = list_versions.name
    order by v.version desc;
    if not found then
        perform jobq_private.refuse_definition(list_versions.type, list_versions.name);
    end if;
end
$$;
grant execute on function jobq_internal.list_versions to jobq_operator, jobq_reader;
