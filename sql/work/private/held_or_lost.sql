-- Purpose: why lock_attempts() has not locked the job of an attempt: another transaction holds
-- it, or the attempt has lost its lease. Raises: nothing.
create or replace function jobq_private.held_or_lost(job_id uuid, attempt integer)
returns text language plpgsql stable as $$
begin
    return case when exists (
        select from jobq_private.job as j
        where j.job_id = held_or_lost.job_id and j.attempt = held_or_lost.attempt
        and j.lease_expires_at is not null
    ) then 'held' else 'lost' end;
end
$$;
