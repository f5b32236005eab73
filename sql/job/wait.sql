-- Purpose: the listening session of a client says that it waits for a job to end.
-- Invariant: LISTEN jobq_ended has committed before. The locks (shared, session) are taken
-- before the job is looked at again, so a completion that commits between the two looks is
-- seen; one that is in flight may not be, so the client looks again within 250 ms.
-- Raises: 22004, JQ001, and then nothing is locked.
-- Returns: true if it has already ended; otherwise its id is sent on jobq_ended when it ends.
-- Example: select jobq.wait(:'running');
create or replace function jobq.wait(job_id uuid)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _ending constant integer := jobq_private.lock_class('ending');
begin
    perform jobq.get_job(wait.job_id);
    perform pg_advisory_lock_shared(jobq_private.lock_class('awaiting'), 0);
    perform pg_advisory_lock_shared(_ending, hashtext(wait.job_id::text) & 1023);
    return (jobq.get_job(wait.job_id)).finished_at is not null;
end
$$;

grant execute on function jobq.wait
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.wait is
'Asks for a notification on jobq_ended when this job ends; returns true if it has already ended. The session must listen.';
