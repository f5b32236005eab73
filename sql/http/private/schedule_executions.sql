-- Purpose: a page of the executions of a schedule's version, by slot, newest first.
-- Invariant: one descent of the index on schedules per partition. The cursor is the
-- slot itself, so it stays valid when its execution is past retention. Slots whose job
-- the overlap rule skipped have no execution.
create or replace function jobq_private.schedule_executions(
    schedule_id uuid, before timestamptz, max_executions integer
)
returns table (item json, cursor timestamptz)
language plpgsql
stable
parallel safe
set jit = off
set enable_seqscan = off
as $$
begin
    return query
    select
        jobq_private.execution_document(p.job),
        case when p.n < count(*) over () then (p.job).slot_at end
    from (
        select j as job, row_number() over (order by j.slot_at desc) as n
        from jobq.job as j
        where j.schedule_id = schedule_executions.schedule_id
        and j.slot_at < coalesce(schedule_executions.before, 'infinity')
        order by j.slot_at desc
        limit schedule_executions.max_executions + 1
    ) as p
    order by p.n
    limit schedule_executions.max_executions;
end
$$;
