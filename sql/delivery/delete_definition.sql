-- Purpose: Deletes a payload spec, config, secret or endpoint; refused while it is in use.
-- Invariant: its versions stay. Refused while an endpoint refers to it. A secret is also kept
-- while waiting jobs use an older endpoint version that refers to it, an endpoint while it has
-- live jobs or schedules. Deleting an endpoint deletes its kind.
-- Raises: 22004, 22023, 42501, JQ007, JQ008. Never: DEFINITION_EXISTS.
-- Argument type: payload_spec, config, secret or endpoint.
-- Example: select jobq.delete_definition('config', 'unused');
create or replace function jobq.delete_definition(type text, name text)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _user text;
begin
    perform jobq_private.begin_definition(
        delete_definition.type, delete_definition.name, 'update'
    );
    if delete_definition.type = 'endpoint' then
        perform jobq_private.forget_kind(delete_definition.name);
        return;
    end if;
    select 'endpoint ' || min(r.endpoint) into _user
    from jobq_private.endpoint_definition as r
    where r.type = delete_definition.type and r.name = delete_definition.name and r.is_current;
    if _user is null and delete_definition.type = 'secret' then
        _user := jobq_private.needed_by_jobs('secret', delete_definition.name);
    end if;
    perform jobq_private.check_problem('HAS_DEPENDENTS', _user);
    delete from jobq_private.definition as d
    where d.type = delete_definition.type and d.name = delete_definition.name;
end
$$;
grant execute on function jobq.delete_definition to jobq_operator;
