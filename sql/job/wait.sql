-- Purpose: Asks for a notification on jobq_ended when this job ends; returns true if it has
-- already ended. The session must listen.
-- Invariant: LISTEN jobq_ended has committed before. The session's shared locks are taken before
-- the job is read again, so a completion between the two reads is seen; one in flight may not be,
-- so the client looks again within 250 ms. Raises: 22004, JQ001, and then nothing is locked.
-- Returns: true if it has already ended; otherwise its id is sent on jobq_ended when it ends.
-- Example: select jobq.wait(:'running');
create or replace function jobq.wait(job_id uuid)
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _ending constant integer := jobq_private.lock_class('ending');
begin
    perform jobq.get_job(wait.job_id);
    perform pg_advisory_lock_shared(jobq_private.lock_class('awaiting'), 0);
    perform pg_advisory_lock_shared(_ending, hashtext(wait.job_id::text) & 1023);
    return (jobq.get_job(wait.job_id)).finished_at is not null;
end
$$;
grant execute on function jobq.wait to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
