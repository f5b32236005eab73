-- Purpose: refuse job ids and attempts that are not parallel. Raises: 22004, 22023.
create or replace function jobq_private.check_attempts(job_ids uuid[], attempts integer[])
returns void language plpgsql stable as $$
begin
    perform jobq_private.check_given('job_ids and attempts', num_nulls(job_ids, attempts));
    perform jobq_private.check_argument(case when cardinality(job_ids) <> cardinality(attempts)
        then 'job_ids and attempts must have the same length' end);
end
$$;
