-- Purpose: the normal case of tick(): take the due slots, and store their jobs with
-- their graphs.
-- Invariant: all or none. With only_id, only the slots of that schedule.
-- Raises: 42501, JQ004.
create or replace function jobq_private.fire_due(
    max_schedules integer, until timestamptz, only_id uuid default null
)
returns table (schedule_id uuid, slot_at timestamptz, job_id uuid, created boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
    _jobs constant jobq_private.new_job[] := jobq_private.schedule_advance(
        fire_due.max_schedules, fire_due.until, fire_due.only_id
    );
begin
    if _jobs is null then
        return;
    end if;
    for schedule_id, slot_at, job_id, created in
    with fired as materialized (
        select j.schedule_id, j.slot_at, f.job_id, f.created
        from jobq_private.schedule_store(_jobs) as f
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
            perform jobq_private.attach_graph(job_id, s.graph)
            from jobq_private.schedule as s
            where s.schedule_id = fire_due.schedule_id and s.graph is not null;
        end if;
        return next;
    end loop;
end
$$;
