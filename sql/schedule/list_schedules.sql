-- Purpose: Returns a page of schedules, newest first: current ones, or those with a status.
-- Invariant: without a status, returns active and paused versions. before is the last
-- id of the previous page; ids are ordered by time. Raises: 22004, 22023.
-- Argument max_schedules: maximum number, 1 to 1000.
-- Returns: rows of jobq.schedule.
-- Example: select name, next_run_at from jobq_internal.list_schedules();
create or replace function jobq_internal.list_schedules(
    status text default null, kind text default null, queue text default null,
    before uuid default null, max_schedules integer default 50
)
returns setof jobq.schedule language plpgsql stable security definer
set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_count('max_schedules', list_schedules.max_schedules, 1, 1000);
    perform jobq_private.check_argument(case
        when list_schedules.status not in ('active', 'paused', 'retired')
        then 'status must be active, paused or retired'
    end);
    return query
    select v.*
    from jobq.schedule as v
    where (
        v.status = list_schedules.status
        or (list_schedules.status is null and v.status <> 'retired')
    )
    and (list_schedules.kind is null or v.kind = list_schedules.kind)
    and (list_schedules.queue is null or v.queue = list_schedules.queue)
    and (list_schedules.before is null or v.schedule_id < list_schedules.before)
    order by v.schedule_id desc
    limit list_schedules.max_schedules;
end
$$;
grant execute on function jobq_internal.list_schedules to jobq_worker, jobq_operator, jobq_reader;
