-- Purpose: why a JSON value of this json_size() cannot be stored: the error's code and detail, or
-- null. Clients could not read it if it were deeper, or held a larger number.
-- Raises: by its callers, JQ005, JQ006.
create or replace function jobq_private.value_problem(
    value jsonb, size integer, max_bytes integer, max_depth integer
)
returns text[]
language sql
stable
as $$
    select case
        when size > max_bytes
        then array['PAYLOAD_TOO_LARGE', format(
            '%s bytes, at most %s', size, max_bytes
        )]
        when size > 2 * max_depth and jsonb_path_exists(
            value, format('strict $.**{%s}', max_depth)::jsonpath
        )
        then array['PAYLOAD_TOO_DEEP', format('at most %s levels', max_depth)]
        when size is null
        or size > 308 and not jobq_private.is_wide(value)
        and jobq_private.has_huge_number(value)
        then array['PAYLOAD_INVALID', 'a number beyond the range of a double']
    end
$$;
