-- Purpose: return the first max_jobs of a claim's locked jobs without a key that may
-- start, and charge them to the limits of their queue; moved counts jobs that now wait
-- under the limit of their kind.
create or replace function jobq_private.pass_queue(
    queue text, inout jobs tid[], max_jobs integer, look jobq_private.queue_look,
    out moved integer
)
language plpgsql
as $$
begin
    moved := cardinality(jobs);
    if look.has_kind_limits and jobs <> '{}' then
        select m.jobs into pass_queue.jobs from jobq_private.move_jobs(jobs, null) as m;
    end if;
    moved := moved - cardinality(jobs);
    jobs := jobs[:max_jobs];
    if look.is_limited and jobs <> '{}' then
        select p.jobs into pass_queue.jobs
        from jobq_private.pass_limits(pass_queue.queue, pass_queue.jobs, null, look) as p;
        perform jobq_private.charge_jobs(
            array(select j.job_id from jobq_private.job as j where j.ctid = any(pass_queue.jobs)),
            true
        );
    end if;
end
$$;
