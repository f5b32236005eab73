-- Purpose: of jobs outside of lanes that a claim has locked, those that wait where they should and that the
-- limits of their queue let start, charged to it.
-- Invariant: the caller has entered the queue, and starts these jobs. Raises: nothing.
create or replace function jobq_private.pass_queue(
    queue text, has_kind_limits boolean, is_limited boolean, inout jobs tid[]
)
language plpgsql
as $$
begin
    if has_kind_limits then
        jobs := jobq_private.divert_jobs(jobs);
    end if;
    if is_limited and jobs <> '{}' then
        select p.jobs into pass_queue.jobs
        from jobq_private.pass_limits(
            pass_queue.queue, clock_timestamp(), pass_queue.jobs, null
        ) as p;
        perform jobq_private.charge_limits(
            array(select j.job_id from jobq_private.job as j where j.ctid = any (pass_queue.jobs)),
            true
        );
    end if;
end
$$;
