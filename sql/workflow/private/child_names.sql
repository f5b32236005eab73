-- Purpose: the names of the children of a call, in order; refuse invalid ones.
-- Raises: 22004, 22023.
create or replace function jobq_private.child_names(children jsonb)
returns text[]
language plpgsql
immutable
as $$
declare
    _names text[];
begin
    if children is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'children');
    elsif jsonb_typeof(children) <> 'array'
        or jsonb_array_length(children) not between 1 and 1000
        or jsonb_path_exists(children, 'strict $[*] ? (@.type() != "object")')
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'children must be a JSON array of 1 to 1000 objects'
        );
    end if;
    _names := array(
        select c ->> 'name' from jsonb_array_elements(children) with ordinality as e (c, n)
        order by n
    );
    if exists (
        select from unnest(_names) as n (name)
        where (length(n.name) between 1 and 256 and n.name not like 'event:%') is not true
    )
    or (select count(distinct n) from unnest(_names) as n) < cardinality(_names)
    or jsonb_path_exists(
        children, 'lax $[*] ? (@.cancel.type() != "boolean" || @.name.type() != "string")'
    )
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'each child needs a name of its own of 1 to 256 characters that does not begin with event:, and cancel must be true or false'
        );
    end if;
    return _names;
end
$$;
