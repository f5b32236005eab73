-- Purpose: Recovers expired leases, ends expired jobs, repairs rows that bypassed the triggers,
-- releases jobs whose parents have ended, fires due schedules, deletes old jobs, keys, workers,
-- steps and events, keeps the history for charts, and creates and drops partitions.
-- Invariant: of any number of callers one does the work, and the others return at once without
-- rows. A task is repeated while it comes back full, for at most half a second, and waits at most
-- a second for a lock. A task that fails is undone; health() reports it until it succeeds. The
-- next call begins with the others. Raises: nothing.
-- Returns: no rows if another session runs it.
-- Column task: recovered, expired, opened_keys, healed, resolved, ticked, pruned_jobs,
-- pruned_keys, pruned_limits, pruned_workflows, rolled_up, made_partitions or dropped_partitions.
-- Column affected: how many; null when the task has failed.
-- Column has_more: whether more work remains.
-- Example: select * from jobq.maintain();
create or replace function jobq.maintain()
returns table (task text, affected bigint, has_more boolean) language plpgsql security definer
set search_path = pg_catalog, pg_temp set lock_timeout = '1s' as $$
#variable_conflict use_column
declare
    _task jobq_private.maintenance_task;
    _at_most constant interval := least(
        interval '0.5 s', nullif(current_setting('statement_timeout')::interval, '0') / 20
    );
    _until timestamptz;
    _done bigint;
    _affected bigint;
begin
    if not pg_try_advisory_xact_lock(jobq_private.lock_class('maintaining'), 0) then
        return;
    end if;
    for _task in
        select t.*
        from jobq_private.maintenance_task as t
        left join jobq_private.failed_task as f on f.task = t.task
        order by f.failed_at nulls first, t.position
    loop
        begin
            _affected := 0;
            _until := clock_timestamp() + _at_most;
            loop
                if _task.max_rows is null then
                    execute format('select jobq_private.%I()', _task.function) into _done;
                else
                    execute format('select jobq_private.%I($1)', _task.function)
                    into _done using _task.max_rows;
                end if;
                _affected := _affected + _done;
                exit when _done < _task.full_at or _task.ends_call or clock_timestamp() > _until;
            end loop;
            delete from jobq_private.failed_task as f where f.task = _task.task;
            return query values (_task.task, _affected, _done >= _task.full_at);
            -- Everybody waits for the locks of partitions until the commit.
            exit when _task.ends_call and _affected > 0;
        exception
            when query_canceled or others then
                insert into jobq_private.failed_task as f (task, sqlstate, error)
                values (_task.task, sqlstate, left(sqlerrm, 512))
                on conflict on constraint failed_task_pkey do update
                set sqlstate = excluded.sqlstate, error = excluded.error,
                    failed_at = now(), failures = f.failures + 1;
                return query values (_task.task, null::bigint, false);
                exit when sqlstate = '57014';
        end;
    end loop;
end
$$;
grant execute on function jobq.maintain to jobq_worker, jobq_operator;
