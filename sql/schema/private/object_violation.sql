-- Purpose: what is wrong with the members of a JSON object under a schema, or null; the half of
-- schema_violation() that descends into objects.
create or replace function jobq_private.object_violation(schema jsonb, value jsonb, path text)
returns text language plpgsql immutable as $$
declare
    _known constant jsonb := coalesce(schema -> 'properties', '{}');
    _key text;
    _found text;
begin
    select r.key into _key
    from jsonb_array_elements_text(schema -> 'required') as r (key)
    where not value ? r.key
    limit 1;
    if found then
        return format('%s.%s is missing', path, _key);
    end if;
    for _key in select k.key from jsonb_object_keys(value) as k (key) loop
        if _known ? _key then
            _found := jobq_private.schema_violation(
                _known -> _key, value -> _key, format('%s.%s', path, _key)
            );
        elsif schema -> 'additionalProperties' = 'false' then
            _found := format('%s.%s is not known; known are %s', path, _key,
                left((
                    select string_agg(k.key, ', ') from jsonb_object_keys(_known) as k (key)
                ), 1000));
        end if;
        if _found is not null then
            return _found;
        end if;
    end loop;
    return null;
end
$$;
