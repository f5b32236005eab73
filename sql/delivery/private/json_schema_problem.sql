-- Purpose: the reason why a JSON Schema (draft 2020-12) cannot be used to check the
-- input of endpoints, or null.
-- Invariant: unknown keywords are ignored. Clients and deliveries also refuse what this refuses,
-- except schemas of another draft; they detect circular references, which this does not.
create or replace function jobq_private.json_schema_problem(schema jsonb)
returns text language plpgsql stable as $$
declare
    _problem text;
begin
    if schema ->> '$schema' !~ '^https?://json-schema[.]org/draft/2020-12/schema#?$' then
        return '$.$schema: must be https://json-schema.org/draft/2020-12/schema, or left out:'
            || ' use that draft';
    end if;
    with recursive part (value, path, is_map, depth) as (
        select json_schema_problem.schema, '$', false, 1
        union all
        select
            c.value, format('%s.%s', p.path, c.key), c.meaning = 'an object of schemas',
            p.depth + 1
        from part as p
        cross join lateral (
            select o.key, o.value, case when not p.is_map then m.meaning else 'a schema' end
            from jsonb_each(case jsonb_typeof(p.value) when 'object' then p.value end) as o
            left join jobq_private.spec_field as m on m.type = 'JSON_SCHEMA' and m.field = o.key
            where p.is_map or o.value @? m.path
            union all
            select (a.n - 1)::text, a.value, 'a schema'
            from jsonb_array_elements(
                case jsonb_typeof(p.value) when 'array' then p.value end
            ) with ordinality as a (value, n)
        ) as c (key, value, meaning)
        where c.meaning in ('a schema', 'an array of schemas', 'an object of schemas')
        and jsonb_typeof(c.value) in ('object', 'array') and p.depth <= 65
    )
    select format('%s.%s: %s', p.path, k.key, case
        when p.depth > 64 then 'nested too deeply'
        when not m.is_met then 'must be ' || m.meaning
        when k.key ~ '[rR]ef$' then 'the schema has no such place'
        else n.problem
    end)
    into _problem
    from part as p
    cross join lateral jsonb_each(
        case when jsonb_typeof(p.value) = 'object' and not p.is_map then p.value end
    ) as k
    left join lateral (
        select f.meaning, k.value @? f.path and (
            k.key not in ('required', 'type')
            or jsonb_typeof(k.value) = 'string'
            or jsonb_array_length(k.value) = (
                select count(distinct e.item) from jsonb_array_elements(k.value) as e (item)
            )
        ) as is_met
        from jobq_private.spec_field as f
        where f.type = 'JSON_SCHEMA' and f.field = k.key
    ) as m on true
    left join lateral (
        select jobq_private.shared_pattern_problem(t.pattern)
        from (
            select k.value #>> '{}' where k.key = 'pattern'
            union all
            select o.name
            from jsonb_object_keys(case when m.is_met then k.value end) as o (name)
            where k.key = 'patternProperties'
        ) as t (pattern)
        where m.is_met and jobq_private.shared_pattern_problem(t.pattern) is not null
        limit 1
    ) as n (problem) on true
    where p.depth > 64 or not m.is_met or n.problem is not null
    or k.key = '$ref' and k.value #>> '{}' ~ '^#/[^%]*$'
        and not schema @? '$.**."$id"'
        and json_schema_problem.schema #> (
            select array_agg(replace(replace(t.step, '~1', '/'), '~0', '~') order by t.n)
            from string_to_table(substr(k.value #>> '{}', 3), '/') with ordinality as t (step, n)
        ) is null
    limit 1;
    return _problem;
end
$$;
