-- Purpose: refuse a payload schema that the database cannot enforce, and paths of a key or a cost
-- that name nothing in it: they would silently disable limits.
-- Invariant: applies to every writer. A schema has at most 1 MiB and 150 levels, whatever
-- payloads may have. Raises: 22023, JQ006. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP,
-- PAYLOAD_INVALID.
create or replace function jobq_private.kind_schema()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
