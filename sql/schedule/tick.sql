-- Purpose: turn the slots that are due into jobs.
-- Invariant: each slot once, however many callers race, and none waits for another; see
-- schedule_advance. At most max_schedules schedules at a call, and as many jobs.
-- Raises: 22004, 22023, JQ004.
-- Argument max_schedules: at most so many schedules, and as many jobs, 1 to 100000.
-- Column job_id: the job that stands for the slot.
-- Column created: false where the overlap rule gave the slot to a job that is still
-- live.
-- Example: select * from jobq.tick();
create or replace function jobq.tick(max_schedules integer default 1000)
returns table (schedule_id uuid, slot_at timestamptz, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _jobs jobq_private.new_job[];
begin
    if tick.max_schedules is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_schedules');
    elsif tick.max_schedules not between 1 and 10000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_schedules must be from 1 to 10000'
        );
    end if;

    perform jobq_private.schedule_follow(tick.max_schedules);
    _jobs := jobq_private.schedule_advance(tick.max_schedules, clock_timestamp());
    if _jobs is null then
        return;
    end if;
    for schedule_id, slot_at, job_id, created in
    with fired as materialized (
        select j.schedule_id, j.slot_at, f.job_id, f.created
        from jobq_private.schedule_fire(_jobs) as f
        join unnest(_jobs) as j on j.ordinal = f.ordinal
    ),
    awaiting as (
        update jobq_private.schedule as s
        set awaited_job_id = f.job_id
        from fired as f
        where s.schedule_id = f.schedule_id and s.from_completion
    )
    select f.schedule_id, f.slot_at, f.job_id, f.created
    from fired as f
    order by f.slot_at, f.schedule_id
    loop
        if created then
            perform jobq_private.hang_graph(job_id, s.graph)
            from jobq_private.schedule as s
            where s.schedule_id = tick.schedule_id and s.graph is not null;
        end if;
        return next;
    end loop;
end
$$;

revoke all on function jobq.tick from public;
grant execute on function jobq.tick to jobq_worker, jobq_operator;

comment on function jobq.tick is
'Turns the slots of schedules that are due into jobs, each once however many callers race.';
