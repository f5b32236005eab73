-- Purpose: why a path of a concurrency key or a cost cannot name anything in a payload, or null.
-- Such a path would silently disable the limits of keys.
create or replace function jobq_private.key_path_problem(name text, path text[], schema jsonb)
returns text
language plpgsql
immutable
as $$
declare
    _part jsonb := schema;
    _member text;
begin
    if cardinality(path) > 2 and array_to_string(path, '') ~ format('^.{%s}$', cardinality(path))
    then
        return format(
            '%s must be a path of names: did you mean {%s}?', name, array_to_string(path, '')
        );
    end if;
    foreach _member in array coalesce(path, '{}') loop
        if _part -> 'additionalProperties' = 'false'
            and not coalesce(_part -> 'properties' ? _member, false)
        then
            return format('%s: payload_schema allows no member %s', name, _member);
        end if;
        _part := _part -> 'properties' -> _member;
    end loop;
    return null;
end
$$;
