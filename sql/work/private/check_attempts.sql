-- Purpose: refuse job ids and attempts that are not parallel. Raises: 22004, 22023.
create or replace function jobq_private.check_attempts(job_ids uuid[], attempts integer[])
returns void
language plpgsql
stable
as $$
begin
    if num_nulls(job_ids, attempts) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_ids and attempts');
    elsif cardinality(job_ids) <> cardinality(attempts) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'job_ids and attempts must have the same length'
        );
    end if;
end
$$;
