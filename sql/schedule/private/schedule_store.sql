-- Purpose: store the jobs of the slots that were taken, by the overlap rule of each
-- schedule, with their graphs.
-- Invariant: does not repeat the checks of the declaration: a refused slot would be
-- lost or stop the others. While grants by queue are enforced, the author of the
-- schedule must still be allowed to add its jobs. Raises: 42501, JQ004.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP,
-- PAYLOAD_INVALID, QUEUE_FULL, JOB_NOT_FOUND, BATCH_NOT_FOUND, BATCH_ENDED, ILLEGAL_STATE.
create or replace function jobq_private.schedule_store(jobs jobq_private.new_job[])
returns table (schedule_id uuid, slot_at timestamptz, job_id uuid, created boolean)
language plpgsql as $$
#variable_conflict use_column
begin
    if jobs is null then
        return;
    elsif row_security_active('jobq_private.job') then
        perform jobq_private.check_author(s.login, s.queue, s.kind, s.dedup, s.graph)
        from jobq_private.schedule as s
        where s.schedule_id in (select j.schedule_id from unnest(jobs) as j);
    end if;
    for schedule_id, slot_at, job_id, created in
        select j.schedule_id, j.slot_at, f.job_id, f.created
        from jobq_private.store_jobs(jobs, is_checked => true) as a
        cross join lateral unnest(a.ids, a.created) with ordinality as f (job_id, created, n)
        join unnest(jobs) as j on j.ordinal = f.n
        order by j.slot_at, j.schedule_id
    loop
        if created then
            perform jobq_private.attach_graph(job_id, s.graph, true)
            from jobq_private.schedule as s
            where s.schedule_id = schedule_store.schedule_id and s.graph is not null;
        end if;
        return next;
    end loop;
end
$$;
