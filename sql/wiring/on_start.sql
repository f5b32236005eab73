-- Purpose: let one job start that the table's trigger asks for.
-- Invariant: replaces the core's hook of this name. A delivery to a paused endpoint is put aside.
-- What no claim has counted is checked and counted here, under the locks of all limits that it
-- passes. The time of its start is read between: no end of what made room is later, and what it
-- is charged counts from no earlier. Raises: JQ011.
create or replace function jobq_private.on_start(job jobq_private.job, is_claim boolean)
returns jobq_private.job language plpgsql as $$
begin
    if job.delivery_version is not null
        and jobq_private.park_delivery(job.job_id, job.kind, job.run_at)
    then
        return null;
    elsif not is_claim then
        if job.concurrency_key is not null then
            -- its kind may have got or lost limits for each key since it was stored
            job.key_id := jobq_private.key_of(job.queue, job.kind, job.concurrency_key, false);
        end if;
        select t.slot, t.started_at into job.slot, job.claimed_at
        from jobq_private.take_slot(job) as t;
    end if;
    return job;
end
$$;
