-- Purpose: lock the row of the job that an attempt holds until the commit, and return the row.
-- Raises: 22004, JQ001, JQ003.
create or replace function jobq_private.lock_attempt(job_id uuid, attempt integer)
returns jobq_private.job language plpgsql set jit = off set enable_seqscan = off as $$
declare
    _job jobq_private.job;
begin
    select j.* into _job
    from jobq_private.job as j
    where j.job_id = lock_attempt.job_id
    and j.attempt = lock_attempt.attempt
    and j.lease_expires_at is not null
    for no key update;
    if not found then
        perform jobq_private.refuse_attempt(lock_attempt.job_id, lock_attempt.attempt);
    end if;
    return _job;
end
$$;
