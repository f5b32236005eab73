-- Purpose: the place of a job that starts by no claim of a batch: a claim of one job, or raw SQL; null
-- where nothing counts what runs.
-- Invariant: waits for the locks of all limits that the job passes, and of its lane, and then looks;
-- the caller charges them. Raises: JQ011.
create or replace function jobq_private.take_place(job jobq_private.job)
returns smallint
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
    _reached text;
    _max_running integer;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        perform jobq_private.see_limits(job.queue);
    end if;
    perform jobq_private.wait_for_limits(job);
    _reached := (
        select b.scope from jobq_private.blocking_limits(job, clock_timestamp(), 1) as b
    );
    if _reached is not null then
        perform jobq_private.raise_error('LIMIT_REACHED', _reached);
    end if;
    _max_running := (
        select coalesce(
            jobq_private.lane_max_running(r, job.queue, job.concurrency_key, l.kind),
            case when num_nonnulls(q.max_running, k.max_running) > 0 then 32767 end
        )
        from (
            select jobq_private.lane_kind(
                job.lane_id, job.queue, job.concurrency_key, job.kind
            ) as kind
        ) as l
        cross join lateral jobq_private.lane_rule(job.queue, job.concurrency_key, l.kind) as r
        left join jobq_private.queue as q on q.queue = job.queue
        left join jobq_private.kind as k on k.kind = job.kind
    );
    if job.lane_id is null then
        return case when _max_running is not null then 1 end;
    end if;
    return (
        select p.places[1]
        from jobq_private.free_places(job.queue, job.lane_id, _max_running, 1) as p (places)
    );
end
$$;
