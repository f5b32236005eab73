-- Purpose: why a JSON value cannot be stored, beside others of so many bytes: the error's code
-- and detail, or null. Clients could not read it if it were deeper, or held a larger number.
-- Raises: by its callers, JQ005, JQ006.
create or replace function jobq_private.value_problem(
    value jsonb, max_bytes integer, max_depth integer, other_bytes integer default 0
)
returns text[] language plpgsql stable strict as $$
declare
    -- 2,000 bytes of numbers, or fewer when compressed, can be a gigabyte as text.
    _is_wide constant boolean := pg_column_size(value) > 2000
        or pg_column_compression(value) is not null;
    _huge constant text[] := array[
        'PAYLOAD_INVALID', 'a number beyond the range of a double'
    ];
    _size integer;
begin
    if _is_wide and jobq_private.has_huge_number(value) then
        return _huge;
    end if;
    _size := octet_length(value::text) + other_bytes;
    if _size > max_bytes then
        return array['PAYLOAD_TOO_LARGE', format('%s bytes, at most %s', _size, max_bytes)];
    elsif _size > 2 * max_depth
        and jsonb_path_exists(value, format('strict $.**{%s}', max_depth)::jsonpath)
    then
        return array['PAYLOAD_TOO_DEEP', format('at most %s levels', max_depth)];
    elsif _size > 308 and not _is_wide and jobq_private.has_huge_number(value) then
        return _huge;
    end if;
    return null;
end
$$;
