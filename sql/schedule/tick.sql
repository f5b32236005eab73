-- Purpose: create the jobs of slots that are due.
-- Invariant: each slot once, however many callers run concurrently, and none waits for
-- another. A schedule that cannot fire does not stop the others: it keeps its slot, is
-- retried a minute later, and health() reports the reason. The caller must repeat 40001
-- and 40P01.
-- Inside: schedule_advance() takes the slots; OTHERS is caught here.
-- Raises: 22004, 22023.
-- Never: DEDUP_CONFLICT, ENQUEUE_DENIED.
-- Argument max_schedules: maximum number of schedules and of jobs, 1 to 10000.
-- Column job_id: the job of the slot.
-- Column created: false if the overlap rule kept a live job instead.
-- Example: select * from jobq.tick();
create or replace function jobq.tick(max_schedules integer default 1000)
returns table (schedule_id uuid, slot_at timestamptz, job_id uuid, created boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _until constant timestamptz := clock_timestamp();
begin
    perform jobq_private.check_count('max_schedules', tick.max_schedules, 1, 10000);

    perform jobq_private.schedule_follow(tick.max_schedules);
    begin
        return query
        select * from jobq_private.fire_due(tick.max_schedules, _until);
        return;
    exception
        when transaction_rollback then
            raise;
        when others then
            null;
    end;
    return query
    select * from jobq_private.fire_each(tick.max_schedules, _until);
end
$$;

grant execute on function jobq.tick to jobq_worker, jobq_operator;

comment on function jobq.tick is
'Creates the jobs of due slots, each once even with concurrent callers.';
