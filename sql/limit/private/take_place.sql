-- Purpose: the place of a job that starts by no claim of a batch: a claim of one job, or raw SQL;
-- null where nothing counts what runs.
-- Invariant: waits for the locks of all gates that the job passes, and of its lane, then looks; so
-- no writer passes a limit. A claim of a batch has looked, and says the place. Raises: JQ011.
create or replace function jobq_private.take_place(job jobq_private.job)
returns smallint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _barrier record;
    _max_running integer;
    _counts boolean;
begin
    perform pg_advisory_xact_lock_shared(_limits, hashtext(job.queue) & 255);
    perform jobq_private.wait_for_gates(job);
    select b.* into _barrier from jobq_private.barrier(job, clock_timestamp()) as b;
    if _barrier.reason is not null then
        perform jobq_private.raise_error('LIMIT_REACHED', _barrier.scope);
    end if;
    _counts := exists (
        select from jobq_private.queue as q
        where q.queue = job.queue and q.max_running is not null
    ) or exists (
        select from jobq_private.kind as k
        where k.kind = job.kind and k.max_running is not null
    );
    update jobq_private.gate as g
    set
        passed_until = jobq_private.spent(
            g.passed_until, j.spacing, j.burst, 1, clock_timestamp()
        ),
        head_job_id = case when j.is_ordered then job.job_id end
    from jobq_private.job_gates(job) as j
    where g.gate_id = j.gate_id;
    select r.max_running into _max_running
    from jobq_private.lane_rule(job.queue, job.concurrency_key) as r;
    return case
        when _max_running is null and not _counts then null
        when job.lane_id is null then 1
        else (
            select p.places[1]
            from jobq_private.free_places(
                job.queue, job.lane_id, coalesce(_max_running, 32767), 1
            ) as p (places)
        )
    end;
end
$$;

revoke all on function jobq_private.take_place from public;

comment on function jobq_private.take_place is
'Gives a job that starts its place, or refuses it.';
