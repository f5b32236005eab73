-- Purpose: why a payload schema cannot be used, or null. Every keyword that schema_violation()
-- does not enforce is refused, except notes such as title.
create or replace function jobq_private.schema_problem(schema jsonb, path text)
returns text language plpgsql immutable strict as $$
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
