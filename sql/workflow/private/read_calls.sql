-- Purpose: the children of calls of several jobs, in order; refuse invalid ones.
-- Raises: 22004, 22023.
create or replace function jobq_private.read_calls(
    job_ids uuid[], attempts integer[], calls jsonb
)
returns jobq_private.child_call[] language plpgsql immutable as $$
declare
    _children jobq_private.child_call[];
begin
    perform jobq_private.check_attempts(job_ids, attempts);
    perform jobq_private.check_given('children', num_nulls(calls));
    perform jobq_private.check_argument(case
        when jsonb_typeof(calls) <> 'array' or jsonb_array_length(calls) <> cardinality(job_ids)
        then 'calls must be a JSON array with the length of job_ids'
        when jsonb_path_exists(
            calls, 'strict $[*] ? (@.type() != "array" || @.size() < 1 || @.size() > 1000)'
        ) or jsonb_path_exists(calls, 'strict $[*][*] ? (@.type() != "object")')
        then 'children must be a JSON array of 1 to 1000 objects'
    end);
    _children := array(
        select row(
            i.n, i.job_id, i.attempt, e.child ->> 'name', e.child, null, null
        )::jobq_private.child_call
        from rows from (unnest(job_ids, attempts), jsonb_array_elements(calls))
            with ordinality as i (job_id, attempt, children, n)
        cross join lateral jsonb_array_elements(i.children)
            with ordinality as e (child, place)
        order by i.n, e.place
    );
    if exists (
        select from unnest(_children) as c
        group by c.job_id, c.attempt, c.name
        having count(*) > 1
        or (length(c.name) between 1 and 256 and c.name not like 'event:%') is not true
    )
    or jsonb_path_exists(
        calls, 'lax $[*][*] ? (@.cancel.type() != "boolean" || @.name.type() != "string")'
    )
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'each child needs a name of its own of 1 to 256 characters that does not begin with event:, and cancel must be true or false'
        );
    end if;
    return _children;
end
$$;
