-- Purpose: everything that must happen from time to time: recover, tick, prune,
-- partitions, the history of charts.
-- Invariant: any number of callers, one does the work and the others return at once
-- with no row. Each task is repeated while it comes back full, for half a second at most; but
-- partitions are made a day at a time, since completions wait for their locks.
-- A task that fails is undone, and it alone, so here OTHERS is caught; health() says why
-- until it has done its work again.
-- Raises: nothing.
-- Never: DEDUP_CONFLICT.
-- Returns: no row when somebody else is at it.
-- Column task: recovered, expired, resolved, ticked, pruned_jobs, pruned_keys, pruned_workflows, rolled_up,
-- made_partitions or dropped_partitions.
-- Column affected: how many; null when the task has failed.
-- Column has_more: whether more is to be done at once.
-- Example: select * from jobq.maintain();
create or replace function jobq.maintain()
returns table (task text, affected bigint, has_more boolean)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _task text;
begin
    if not pg_try_advisory_xact_lock(jobq_private.lock_class('maintaining'), 0) then
        return;
    end if;
    foreach _task in array array[
        'recovered', 'expired', 'resolved', 'ticked', 'pruned_jobs', 'pruned_keys',
        'pruned_workflows', 'rolled_up',
        'made_partitions', 'dropped_partitions'
    ] loop
        begin
            return query select _task, u.affected, u.has_more
            from jobq_private.upkeep(_task, interval '0.5 s') as u;
            delete from jobq_private.failed_task as f where f.task = _task;
        exception
            when others then
                insert into jobq_private.failed_task as f (task, sqlstate, error)
                values (_task, sqlstate, left(sqlerrm, 512))
                on conflict on constraint failed_task_pkey do update
                set sqlstate = excluded.sqlstate, error = excluded.error,
                    failed_at = now(), failures = f.failures + 1;
                return query values (_task, null::bigint, false);
        end;
    end loop;
end
$$;

revoke all on function jobq.maintain from public;
grant execute on function jobq.maintain to jobq_worker, jobq_operator;

comment on function jobq.maintain is
'Recovers expired leases, ends jobs that expired, releases what waits for jobs that have ended, fires schedules that are due, prunes jobs, keys, workers, steps and events, keeps the history of charts, makes and drops partitions; safe for any number of callers.';
