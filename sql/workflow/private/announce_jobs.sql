-- Purpose: make jobs that have become due known to their keys, and wake workers of their queues.
-- Invariant: the caller has changed the jobs.
create or replace function jobq_private.announce_jobs(job_ids uuid[])
returns void language plpgsql as $$
begin
    perform jobq_private.open_keys(job_ids);
    perform jobq_private.wake(array(
        select distinct j.queue
        from jobq_private.job as j
        where j.job_id = any(announce_jobs.job_ids)
    ));
end
$$;
