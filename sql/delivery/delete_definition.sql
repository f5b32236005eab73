-- Purpose: Deletes a payload spec, config, secret or endpoint; refused while it is in
-- use.
-- Invariant: its versions stay. Refused while an endpoint refers to it. A secret is also kept while
-- waiting jobs use an older endpoint version that refers to it, an endpoint while it
-- has live jobs or schedules. Deleting an endpoint deletes its kind.
-- Raises: 22004, 22023, JQ007, JQ008.
-- Never: DEFINITION_EXISTS.
-- Argument type: payload_spec, config, secret or endpoint.
-- Argument name: the definition's name.
-- Example: select jobq.delete_definition('config', 'unused');
create or replace function jobq.delete_definition(type text, name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _type constant text := delete_definition.type;
    _name constant text := delete_definition.name;
    _endpoint text;
    _jobs text;
begin
    perform jobq_private.begin_definition(_type, _name, 'update');
    select d.endpoint into _endpoint
    from (
        select 'payload_spec' as type, e.payload_spec as name, e.endpoint
        from jobq_private.endpoint as e
        union all
        select 'config', e.config, e.endpoint
        from jobq_private.endpoint as e
        union all
        select 'secret', s.secret, s.endpoint
        from jobq_private.endpoint_secret as s
    ) as d
    where d.type = _type and d.name = _name
    order by d.endpoint
    limit 1;
    if found then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format('endpoint %s', _endpoint));
    elsif _type = 'secret' then
        _jobs := jobq_private.needed_by_jobs('secret', _name);
        if _jobs is not null then
            perform jobq_private.raise_error('HAS_DEPENDENTS', _jobs);
        end if;
        delete from jobq_private.secret as s where s.secret = _name;
    elsif _type = 'payload_spec' then
        delete from jobq_private.payload_spec as p where p.payload_spec = _name;
    elsif _type = 'config' then
        delete from jobq_private.config as c where c.config = _name;
    else
        perform jobq_private.forget_kind(_name);
    end if;
end
$$;

grant execute on function jobq.delete_definition to jobq_operator;
