-- Deploy jobq:schema to pg, after @v1.0.0
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: what is wrong with a JSON value under a schema that schema_problem() accepts, or null.
create or replace function jobq_private.schema_violation(schema jsonb, value jsonb, path text)
returns text language plpgsql immutable as $$
declare
    _types constant jsonb := schema -> 'type';
    _type text := jsonb_typeof(value);
begin
    if _type = 'number' and value::numeric = trunc(value::numeric) then
        _type := 'integer';
    end if;
    if not (_types @> to_jsonb(_type) or _type = 'integer' and _types @> '"number"') then
        return format('%s must be %s, not %s', path, _types, _type);
    elsif schema ? 'enum' and (
        not schema -> 'enum' @> jsonb_build_array(value)
        or _type in ('object', 'array') and not exists (
            select from jsonb_array_elements(schema -> 'enum') as e (item) where e.item = value
        )
    ) then
        return format('%s must be one of %s', path, left((schema -> 'enum')::text, 1000));
    elsif _type in ('number', 'integer') and (
        value::numeric < (schema ->> 'minimum')::numeric
        or value::numeric > (schema ->> 'maximum')::numeric
    ) then
        return path || ' must be ' || coalesce(
            'from ' || (schema ->> 'minimum') || ' to ' || (schema ->> 'maximum'),
            'at least ' || (schema ->> 'minimum'), 'at most ' || (schema ->> 'maximum')
        );
    elsif _type = 'string' and (
        length(value #>> '{}') < (schema ->> 'minLength')::numeric
        or length(value #>> '{}') > (schema ->> 'maxLength')::numeric
    ) then
        return format('%s must have %s to %s characters', path,
            coalesce(schema ->> 'minLength', '0'), coalesce(schema ->> 'maxLength', '∞'));
    elsif _type = 'string'
        and not jobq_private.matches_pattern(value #>> '{}', schema ->> 'pattern')
    then
        return format('%s must match %s', path, schema ->> 'pattern');
    elsif _type = 'array' and schema ? 'items' then
        return (
            select f.violation
            from (
                -- Equal items are checked once.
                select d.item, min(d.n) as n
                from jsonb_array_elements(value) with ordinality as d (item, n)
                group by d.item
            ) as e
            cross join lateral (
                select jobq_private.schema_violation(
                    schema -> 'items', e.item, format('%s[%s]', path, e.n - 1)
                )
                offset 0
            ) as f (violation)
            where f.violation is not null
            limit 1
        );
    elsif _type = 'object' then
        return jobq_private.object_violation(schema, value, path);
    end if;
    return null;
end
$$;

commit;
