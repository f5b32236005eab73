-- Purpose: everything that must happen from time to time: recover, tick, prune,
-- partitions, the history of charts, settings that no trigger saw.
-- Invariant: any number of callers, one does the work and the others return at once
-- with no row. Each task is repeated while it comes back full, for half a second at most; but
-- partitions are made a day at a time, since completions wait for their locks.
-- A task that fails is undone, and it alone, so here OTHERS is caught; health() says why
-- until it has done its work again. So is one that waits for a lock for a second, or meets the
-- end of statement_timeout: that ends the call, and the next one begins with the others, so
-- that each has its turn however short that is.
-- Raises: nothing.
-- Returns: no row when somebody else is at it.
-- Column task: recovered, expired, resolved, ticked, pruned_jobs, pruned_keys, pruned_workflows, rolled_up,
-- made_partitions, dropped_partitions or renewed_settings.
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
    _tasks text[];
    _at_most constant interval := least(
        interval '0.5 s', nullif(current_setting('statement_timeout')::interval, '0') / 20
    );
begin
    if not pg_try_advisory_xact_lock(jobq_private.lock_class('maintaining'), 0) then
        return;
    end if;
    select array_agg(t.task order by f.failed_at nulls first, t.nth) into _tasks
    from unnest(array[
        'recovered', 'expired', 'resolved', 'ticked', 'pruned_jobs', 'pruned_keys',
        'pruned_workflows', 'rolled_up', 'made_partitions', 'dropped_partitions',
        'renewed_settings'
    ]) with ordinality as t (task, nth)
    left join jobq_private.failed_task as f on f.task = t.task;
    foreach _task in array _tasks loop
        begin
            return query select _task, u.affected, u.has_more
            from jobq_private.upkeep(_task, _at_most) as u;
            delete from jobq_private.failed_task as f where f.task = _task;
        exception
            when query_canceled or others then
                insert into jobq_private.failed_task as f (task, sqlstate, error)
                values (_task, sqlstate, left(sqlerrm, 512))
                on conflict on constraint failed_task_pkey do update
                set sqlstate = excluded.sqlstate, error = excluded.error,
                    failed_at = now(), failures = f.failures + 1;
                return query values (_task, null::bigint, false);
                exit when sqlstate = '57014';
        end;
    end loop;
end
$$;

revoke all on function jobq.maintain from public;
grant execute on function jobq.maintain to jobq_worker, jobq_operator;

comment on function jobq.maintain is
'Recovers expired leases, ends jobs that expired, releases what waits for jobs that have ended, fires schedules that are due, prunes jobs, keys, workers, steps and events, keeps the history of charts, makes and drops partitions, and tells enqueue() of settings that no trigger saw; safe for any number of callers.';
