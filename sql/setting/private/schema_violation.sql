-- Purpose: what is wrong with a JSON value under a schema that schema_problem() accepts, or null.
create or replace function jobq_private.schema_violation(
    schema jsonb, value jsonb, path text
)
returns text
language plpgsql
immutable
as $$
declare
    _types jsonb := schema -> 'type';
    _type text := jsonb_typeof(value);
    _found text;
    _size integer;
    _items jsonb;
begin
    if _type = 'number' and value::numeric = trunc(value::numeric) then
        _type := 'integer';
    end if;
    if _types is not null and not (
        _types @> to_jsonb(_type) or (_type = 'integer' and _types @> '"number"')
    ) then
        return format('%s must be %s, not %s', path, _types, _type);
    end if;
    if schema ? 'enum' and (
        not schema -> 'enum' @> jsonb_build_array(value)
        or _type in ('object', 'array') and not exists (
            select from jsonb_array_elements(schema -> 'enum') as e (item) where e.item = value
        )
    ) then
        return format('%s must be one of %s', path, left((schema -> 'enum')::text, 1000));
    end if;

    if _type in ('number', 'integer') then
        if value::numeric < (schema ->> 'minimum')::numeric
            or value::numeric > (schema ->> 'maximum')::numeric
        then
            return format('%s must be from %s to %s', path,
                coalesce(schema ->> 'minimum', '-∞'), coalesce(schema ->> 'maximum', '∞'));
        end if;
    elsif _type = 'string' then
        _size := length(value #>> '{}');
        if _size < (schema ->> 'minLength')::integer
            or _size > (schema ->> 'maxLength')::integer
        then
            return format('%s must have %s to %s characters', path,
                coalesce(schema ->> 'minLength', '0'), coalesce(schema ->> 'maxLength', '∞'));
        end if;
        if schema ? 'pattern'
            and not jobq_private.matches_pattern(value #>> '{}', schema ->> 'pattern')
        then
            return format('%s must match %s', path, schema ->> 'pattern');
        end if;
    elsif _type = 'array' and schema ? 'items' then
        _items := schema -> 'items';
        select f.violation into _found
        from (
            select d.item, min(d.n) as n
            from jsonb_array_elements(value) with ordinality as d (item, n)
            group by d.item
        ) as e
        cross join lateral (
            select jobq_private.schema_violation(
                _items, e.item, format('%s[%s]', path, e.n - 1)
            )
            offset 0
        ) as f (violation)
        where f.violation is not null
        limit 1;
        return _found;
    elsif _type = 'object' then
        return jobq_private.object_violation(schema, value, path);
    end if;
    return null;
end
$$;
