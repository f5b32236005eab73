-- Purpose: raise the reason why an attempt does not hold a job. Raises: 22004, JQ001, JQ003.
create or replace function jobq_private.refuse_attempt(job_id uuid, attempt integer)
returns void language plpgsql stable as $$
declare
    _state text;
    _attempt integer;
begin
    perform jobq_private.check_given('job_id and attempt', num_nulls(job_id, attempt));
    select j.state, j.attempt into _state, _attempt
    from jobq.get_job(refuse_attempt.job_id) as j;
    perform jobq_private.raise_error('LEASE_LOST', format(
        'job_id %s, attempt %s: the job is %s at attempt %s',
        refuse_attempt.job_id, refuse_attempt.attempt, _state, _attempt
    ));
end
$$;
