-- Purpose: the place of a job that starts by no claim of a batch: a claim of one job, or raw SQL;
-- null where nothing counts what runs.
-- Invariant: waits for the locks of all gates that the job passes, and of its lane, then looks; so
-- no writer passes a limit. A lane that no claim has opened has no row to lock: another may fill it
-- after the look at the barrier, so the places have the last word. A claim of a batch has looked,
-- and says the place. Raises: JQ011.
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
    _places smallint[];
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
    if job.lane_id is null then
        return case when _counts then 1 end;
    end if;
    select p.places into _places
    from jobq_private.free_places(
        job.queue, job.lane_id, coalesce(_max_running, case when _counts then 32767 end), 1
    ) as p (places);
    if _places = '{}' then
        perform jobq_private.raise_error('LIMIT_REACHED', format(
            'queue %s, concurrency_key %s: %s', job.queue, job.concurrency_key, _max_running
        ));
    end if;
    return _places[1];
end
$$;

revoke all on function jobq_private.take_place from public;

comment on function jobq_private.take_place is
'Gives a job that starts its place, or refuses it.';
