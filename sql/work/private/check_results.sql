-- Purpose: refuse a settlement whose parts do not fit together, or with a result that is too
-- large or too deep; return the results. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_results(
    job_ids uuid[], attempts integer[], results jsonb
)
returns jsonb language plpgsql stable as $$
begin
    if (cardinality(job_ids) = cardinality(attempts)) is not true then
        perform jobq_private.check_attempts(job_ids, attempts);  -- names what is wrong
    elsif results is null then
        return null;
    elsif jsonb_typeof(results) <> 'array'
        or jsonb_array_length(results) <> cardinality(job_ids)
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'results must be a JSON array with the length of job_ids'
        );
    end if;
    perform jobq_private.check_problem(
        c.problem[1], format('result %s: %s', r.n, c.problem[2])
    )
    from jobq_private.setting as g
    cross join jsonb_array_elements(results) with ordinality as r (result, n)
    cross join lateral (
        select jobq_private.value_problem(r.result, g.max_payload_bytes, g.max_payload_depth)
        offset 0
    ) as c (problem)
    where not jobq_private.is_small(r.result, g.max_payload_depth)
    and c.problem is not null
    limit 1;
    return results;
end
$$;
