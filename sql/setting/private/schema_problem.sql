-- Purpose: why a payload schema cannot be used, or null. Every keyword that schema_violation()
-- does not enforce is refused, except notes such as title.
create or replace function jobq_private.schema_problem(schema jsonb, path text)
returns text
language plpgsql
immutable
as $$
declare
    _known constant jsonb := '{
        "type": ["string", "array"], "required": ["array"], "properties": ["object"],
        "additionalProperties": ["boolean"], "items": ["object"], "enum": ["array"],
        "minimum": ["number"], "maximum": ["number"], "minLength": ["number"],
        "maxLength": ["number"], "pattern": ["string"], "title": ["string"],
        "description": ["string"], "$schema": ["string"], "examples": ["array"],
        "default": ["string", "number", "boolean", "object", "array", "null"]
    }';
    _types constant jsonb :=
        '["object", "array", "string", "number", "integer", "boolean", "null"]';
    _key text;
    _value jsonb;
    _found text;
begin
    if jsonb_typeof(schema) <> 'object' then
        return format('%s must be an object', path);
    end if;
    for _key, _value in
        select e.key, e.value from jsonb_each(schema) as e
    loop
        if not coalesce(_known -> _key @> to_jsonb(jsonb_typeof(_value)), false) then
            return format('%s.%s: known are %s', path, _key,
                (select string_agg(k.key, ', ') from jsonb_object_keys(_known) as k (key)));
        elsif _key = 'type' and not _types @> _value then
            return format('%s.type must be among %s', path, _types);
        elsif _key in ('minLength', 'maxLength') and _value::text !~ '^[0-9]{1,9}$' then
            return format('%s.%s must be a whole number', path, _key);
        elsif _key = 'enum' and jsonb_array_length(_value) > 1000 then
            return format('%s.enum must have at most 1000 values', path);
        elsif _key = 'required' and _value @? '$[*] ? (@.type() != "string")' then
            return format('%s.required must be an array of names', path);
        elsif _key = 'pattern' then
            _found := path || '.pattern: ' || jobq_private.pattern_problem(_value #>> '{}');
        elsif _key = 'items' then
            _found := jobq_private.schema_problem(_value, format('%s.items', path));
        elsif _key = 'properties' then
            select f.problem into _found
            from jsonb_each(_value) as p
            cross join lateral (
                select jobq_private.schema_problem(p.value, format('%s.%s', path, p.key))
                offset 0
            ) as f (problem)
            where f.problem is not null
            limit 1;
        end if;
        if _found is not null then
            return _found;
        end if;
    end loop;
    return null;
end
$$;
