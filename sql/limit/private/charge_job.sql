-- Purpose: a job has started by no claim of a batch: the gates that it has passed know of it,
-- and a lane in which no other might start before it is opened.
-- Invariant: the caller holds them since find_place(), and has stamped the start. All are written
-- to, so that a repeatable snapshot that has not seen the start fails at them. Raises: nothing.
create or replace function jobq_private.charge_job(job jobq_private.job)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    update jobq_private.gate as g
    set
        passed_until = jobq_private.spent(
            g.passed_until, j.spacing, j.burst, 1, clock_timestamp()
        ),
        head_job_id = case when j.is_ordered then job.job_id end
    from jobq_private.job_gates(job) as j
    where g.gate_id = j.gate_id;

    select jobq_private.call_full_lanes(
        array[job.queue], array[job.lane_id], array[job.kind], array[job.concurrency_key]
    )
    where job.attempt > 0 and job.lane_id is not null
    and exists (
        select from jobq_private.kind as k where k.kind = job.kind and k.ordered
    )
$$;

revoke all on function jobq_private.charge_job from public;

comment on function jobq_private.charge_job is
'Has the gates that a job has passed know of its start.';
