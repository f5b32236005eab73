-- Purpose: what is wrong with a payload under a JSON Schema, by the optional extension
-- pg_jsonschema; null if nothing, or without it.
-- Invariant: calls only a member of the extension, whatever else has its name. Schemas that refer
-- outside of themselves are left to deliveries.
create or replace function jobq_private.json_schema_violation(schema jsonb, value jsonb)
returns text language plpgsql stable as $$
declare
    _draft constant jsonb :=
        '{"$schema": "https://json-schema.org/draft/2020-12/schema"}'::jsonb;
    _namespace text;
    _fits boolean;
begin
    select n.nspname into _namespace
    from pg_catalog.pg_extension as x
    join pg_catalog.pg_depend as d
        on d.refclassid = 'pg_catalog.pg_extension'::regclass
        and d.refobjid = x.oid
        and d.classid = 'pg_catalog.pg_proc'::regclass
        and d.deptype = 'e'
    join pg_catalog.pg_proc as p
        on p.oid = d.objid and p.proname = 'jsonb_matches_schema'
    join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
    where x.extname = 'pg_jsonschema'
    and has_schema_privilege(n.oid, 'usage')
    and has_function_privilege(p.oid, 'execute')
    and not schema @? '$.** ? (@.type() == "object").keyvalue()
        ? (@.key == "$ref" || @.key == "$dynamicRef") ? (!(@.value starts with "#"))';

    if found then
        execute format('select %I.jsonb_matches_schema($1, $2)', _namespace)
        into _fits using (schema || _draft)::json, value;
    end if;
    return case when not _fits then 'payload does not match the payload spec' end;
end
$$;
