-- Purpose: store the jobs of the slots that were taken, by the overlap rule of each
-- schedule.
-- Invariant: does not repeat the checks of the declaration: a refused slot would be
-- lost or stop the others. While grants by queue are enforced, the author of the
-- schedule must still be allowed to add its jobs. Raises: 42501, JQ004.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP,
-- PAYLOAD_INVALID, QUEUE_FULL, JOB_NOT_FOUND, BATCH_NOT_FOUND, BATCH_ENDED, ILLEGAL_STATE.
create or replace function jobq_private.schedule_store(jobs jobq_private.new_job[])
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
as $$
begin
    if row_security_active('jobq_private.job') then
        perform jobq_private.check_author(s.login, s.queue, s.kind, s.dedup, s.graph)
        from jobq_private.schedule as s
        where s.schedule_id in (select j.schedule_id from unnest(schedule_store.jobs) as j);
    end if;
    return query
    select s.n::integer, s.job_id, s.created
    from jobq_private.store_jobs(schedule_store.jobs, is_checked => true) as a
    cross join lateral unnest(a.ids, a.created) with ordinality as s (job_id, created, n);
end
$$;
