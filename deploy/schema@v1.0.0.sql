-- Deploy jobq:schema to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: what is wrong with a payload under a JSON Schema, by the optional extension
-- pg_jsonschema; null if nothing, or without it.
-- Invariant: calls only a member of the extension, whatever else has its name. Schemas that refer
-- outside of themselves are left to deliveries.
create or replace function jobq_private.json_schema_violation(schema jsonb, value jsonb)
returns text
language plpgsql
stable
as $$
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

-- Purpose: whether a text matches a schema's pattern, as in RE2, by which clients check: classes
-- such as \w are ASCII, and a dot matches no line break.
create or replace function jobq_private.matches_pattern(value text, pattern text)
returns boolean
language sql
immutable
set standard_conforming_strings = on
as $$
    select matches_pattern.value collate "C" ~ case
        when matches_pattern.pattern !~ '\.' then matches_pattern.pattern
        else (
            select string_agg(case m[1] when '.' then '[^\n]' else m[1] end, '' order by n)
            from regexp_matches(
                matches_pattern.pattern, '\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^]\\])*\]|.', 'g'
            ) with ordinality as t (m, n)
        )
    end
$$;

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

-- Purpose: why a pattern cannot be used, or null: it must match in time linear in the text.
-- Invariant: refuses what PostgreSQL matches by backtracking (back references) or anew from each
-- place (lookarounds), as RE2 does, repeats that multiply, and comments and flavours that could
-- hide either.
create or replace function jobq_private.pattern_problem(pattern text)
returns text
language plpgsql
immutable
strict
set standard_conforming_strings = on
as $$
declare
    -- Without escaped characters but digits, and without what stands in brackets.
    _bare constant text := regexp_replace(
        regexp_replace(pattern_problem.pattern, '\\[^0-9]', 'x', 'g'),
        '\[\^?\]?[^]]*\]', 'x', 'g'
    );
    _unfolded numeric;
begin
    if length(pattern_problem.pattern) > 1000 then
        return 'longer than 1000 characters';
    elsif pattern_problem.pattern ~ '^\*\*\*|\(\?#|^\(\?[a-z]*[^imnpst:=!<)]' then
        return 'comments, literal texts and other syntaxes of patterns are not supported';
    elsif _bare ~ '\\[1-9]' then
        return 'back references cannot be matched in linear time';
    elsif _bare ~ '\(\?<?[=!]' then
        return 'lookarounds cannot be matched in linear time';
    end if;
    select
        coalesce(exp(sum(ln(greatest(1, r.times))) filter (where r.is_group)), 1)
        * coalesce(max(r.times) filter (where not r.is_group), 1)
    into _unfolded
    from (
        select
            m[1] <> '' as is_group,
            greatest(m[2]::numeric, nullif(m[3], '')::numeric) as times
        from regexp_matches(_bare, '(\)?)\{(\d{1,9})(?:,(\d{0,9}))?\}', 'g') as m
    ) as r;
    if _unfolded > 256.5 then
        return 'its nested repeats multiply to more than 256';
    end if;
    perform '' ~ pattern_problem.pattern;
    return null;
exception
    when invalid_regular_expression then
        return sqlerrm;
end
$$;

-- Purpose: why a payload schema cannot be used, or null. Every keyword that schema_violation()
-- does not enforce is refused, except notes such as title.
create or replace function jobq_private.schema_problem(schema jsonb, path text)
returns text
language plpgsql
immutable
strict
as $$
declare
    -- The schema of schemas.
    _keywords constant jsonb := '{
        "type": "object", "additionalProperties": false, "properties": {
            "type": {"type": ["string", "array"]},
            "required": {"type": "array", "items": {"type": "string"}},
            "properties": {"type": "object"}, "additionalProperties": {"type": "boolean"},
            "items": {"type": "object"}, "enum": {"type": "array"},
            "minimum": {"type": "number"}, "maximum": {"type": "number"},
            "minLength": {"type": "integer", "minimum": 0, "maximum": 1000000000},
            "maxLength": {"type": "integer", "minimum": 0, "maximum": 1000000000},
            "pattern": {"type": "string"}, "title": {"type": "string"},
            "description": {"type": "string"}, "$schema": {"type": "string"},
            "examples": {"type": "array"}, "default": {}
        }
    }'::jsonb;
    _types constant jsonb :=
        '["object", "array", "string", "number", "integer", "boolean", "null"]'::jsonb;
begin
    return coalesce(
        jobq_private.schema_violation(_keywords, schema, path),
        case when not _types @> (schema -> 'type')
            then format('%s.type must be among %s', path, _types) end,
        case when jsonb_array_length(schema -> 'enum') > 1000
            then format('%s.enum must have at most 1000 values', path) end,
        path || '.pattern: ' || jobq_private.pattern_problem(schema ->> 'pattern'),
        jobq_private.schema_problem(schema -> 'items', path || '.items'),
        (
            select f.problem
            from jsonb_each(schema -> 'properties') as p
            cross join lateral (
                select jobq_private.schema_problem(p.value, format('%s.%s', path, p.key))
                offset 0
            ) as f (problem)
            where f.problem is not null
            limit 1
        )
    );
end
$$;

-- Purpose: what is wrong with a JSON value under a schema that schema_problem() accepts, or null.
create or replace function jobq_private.schema_violation(
    schema jsonb, value jsonb, path text
)
returns text
language plpgsql
immutable
as $$
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
        return format('%s must be from %s to %s', path,
            coalesce(schema ->> 'minimum', '-∞'), coalesce(schema ->> 'maximum', '∞'));
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

-- Purpose: refuse a payload schema that the database cannot enforce, and paths of a key or a cost
-- that name nothing in it: they would silently disable limits.
-- Invariant: applies to every writer. A schema has at most 1 MiB and 150 levels, whatever payloads
-- may have. Raises: 22023, JQ006. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.kind_schema()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _name text;
    _path text[];
    _part jsonb;
    _member text;
begin
    perform jobq_private.check_problem('SCHEMA_INVALID', coalesce(
        (jobq_private.value_problem(new.payload_schema, 1048576, 150))[2],
        jobq_private.schema_problem(new.payload_schema, 'schema')
    ));
    for _name, _path in
        values ('concurrency_key', new.concurrency_key), ('cost', new.cost)
        union all
        select 'dedup_key', p.path from jobq_private.key_paths(new.dedup_key) as p
        where cardinality(new.dedup_key) <= 16  -- else a constraint refuses it
    loop
        perform jobq_private.check_argument(case
            when cardinality(_path) > 2
                and length(array_to_string(_path, '')) = cardinality(_path)
            then format(
                '%s must be a path of names: did you mean {%s}?', _name,
                left(array_to_string(_path, ''), 100)
            )
        end);
        _part := new.payload_schema;
        foreach _member in array coalesce(_path, '{}') loop
            exit when _part is null;
            perform jobq_private.check_argument(case
                when _part -> 'additionalProperties' = 'false'
                    and not coalesce(_part -> 'properties' ? _member, false)
                then format('%s: payload_schema allows no member %s', _name, _member)
            end);
            _part := _part -> 'properties' -> _member;
        end loop;
    end loop;
    return new;
end
$$;

create or replace trigger kind_schema
before insert or update of payload_schema, concurrency_key, cost, dedup_key on jobq_private.kind
for each row when (new.delivery_version is null)
execute function jobq_private.kind_schema();

commit;
