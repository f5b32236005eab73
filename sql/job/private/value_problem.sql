-- Purpose: why a JSON value cannot be stored: the error's code and its detail; null when it
-- can. size is what json_size() says of it.
-- Invariant: what is nested deeper, or holds a number beyond the range of a double, could
-- not be read by clients. strict, for lax looks at nested arrays over and over; for new
-- jobs new_job_problem() does the same inline.
-- Raises: by its callers, JQ005, JQ006.
create or replace function jobq_private.value_problem(
    value jsonb, size integer, max_bytes integer, max_depth integer
)
returns text[]
language sql
stable
parallel safe
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
