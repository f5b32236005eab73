-- Purpose: why a JSON value cannot be stored, beside others of so many bytes: the error's code
-- and detail, or null. Clients could not read it if it were deeper, or held a number beyond the
-- range of a double, or a zero with more than 400 decimals. Raises: by its callers, JQ005, JQ006.
create or replace function jobq_private.value_problem(
    value jsonb, max_bytes integer, max_depth integer, other_bytes integer default 0
)
returns text[] language plpgsql stable strict as $$
declare
    _size integer;
begin
    -- jsonb stores 1e131071 in nine characters, and as text it has 131,073: 2,000 bytes of such
    -- numbers, or fewer when compressed, can be a gigabyte as text.
    if pg_column_size(value) > 2000 or pg_column_compression(value) is not null
        or octet_length(value::text) > 308
    then
        if exists (
            select from jsonb_array_elements(jsonb_path_query_array(
                value,
                'strict $.** ? (@ > -2.5e-324 && @ < 2.5e-324 || @ >= 1.8e308 || @ <= -1.8e308)'
            )) as n (number)
            where n.number <> '0' or scale(n.number::numeric) > 400
        ) then
            return array['PAYLOAD_INVALID', 'a number beyond the range of a double'];
        end if;
    end if;
    _size := octet_length(value::text) + other_bytes;
    if _size > max_bytes then
        return array['PAYLOAD_TOO_LARGE', format('%s bytes, at most %s', _size, max_bytes)];
    elsif _size > 2 * max_depth
        and jsonb_path_exists(value, format('strict $.**{%s}', max_depth)::jsonpath)
    then
        return array['PAYLOAD_TOO_DEEP', format('at most %s levels', max_depth)];
    end if;
    return null;
end
$$;
