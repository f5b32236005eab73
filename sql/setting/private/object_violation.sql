-- Purpose: what is wrong with the members of a JSON object under a schema, or null; the half of
-- schema_violation() that descends into objects.
create or replace function jobq_private.object_violation(
    schema jsonb, value jsonb, path text
)
returns text
language plpgsql
immutable
as $$
declare
    _key text;
    _found text;
begin
    for _key in
        select r.key from jsonb_array_elements_text(schema -> 'required') as r (key)
    loop
        if not value ? _key then
            return format('%s.%s is missing', path, _key);
        end if;
    end loop;
    for _key in
        select k.key from jsonb_object_keys(value) as k (key)
    loop
        if schema -> 'properties' ? _key then
            _found := jobq_private.schema_violation(
                schema -> 'properties' -> _key, value -> _key, format('%s.%s', path, _key)
            );
            if _found is not null then
                return _found;
            end if;
        elsif schema -> 'additionalProperties' = 'false' then
            return format('%s.%s is not known', path, _key);
        end if;
    end loop;
    return null;
end
$$;
