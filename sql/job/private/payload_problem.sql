-- Purpose: why the payload of a new job does not fit the declaration of its kind, or null. A path
-- that names nothing, or null, means no key, or a cost of 1.
create or replace function jobq_private.payload_problem(
    job jobq_private.new_job, settings jobq_private.settings
)
returns text language plpgsql stable as $$
declare
    _payload constant jsonb := coalesce(job.payload, '{}');
    _key constant jsonb := _payload #> settings.concurrency_key;
    _cost constant jsonb := _payload #> settings.cost;
    _path constant text := '/' || array_to_string(settings.concurrency_key, '/');
begin
    return coalesce(
        case
            when settings.payload_schema is not null then jobq_private.schema_violation(
                settings.payload_schema, _payload, 'payload'
            )
            when settings.json_schema is not null then jobq_private.json_schema_violation(
                settings.json_schema, _payload
            )
        end,
        case
            when job.concurrency_key is not null then null
            when jsonb_typeof(_key) in ('object', 'array')
            then format(
                '%s is an %s: it cannot be a concurrency key', _path, jsonb_typeof(_key)
            )
            when octet_length(_key #>> '{}') not between 1 and 1024
            then format('%s: a concurrency key must have 1 to 1024 bytes', _path)
        end,
        case
            when job.cost is not null or jsonb_typeof(_cost) = 'null' then null
            when jsonb_typeof(_cost) <> 'number'
                or _cost::numeric not between 0 and 1000000000000
            then format(
                '/%s: a cost must be a number from 0 to 1000000000000',
                array_to_string(settings.cost, '/')
            )
        end
    );
end
$$;
