-- Purpose: of jobs without a key that a claim has locked, those that may start, charged
-- to the limits of their queue.
-- Invariant: the caller has entered the queue, and starts these jobs.
create or replace function jobq_private.pass_queue(
    queue text, inout jobs tid[], look jobq_private.queue_look
)
language plpgsql
as $$
begin
    if jobs = '{}' or not (look.has_kind_limits or coalesce(look.is_limited, false)) then
        return;
    end if;
    select p.jobs into pass_queue.jobs
    from jobq_private.pass_limits(pass_queue.queue, pass_queue.jobs, null, look) as p;
    if look.is_limited then
        perform jobq_private.charge_jobs(
            array(select j.job_id from jobq_private.job as j where j.ctid = any(pass_queue.jobs)),
            true
        );
    end if;
end
$$;
