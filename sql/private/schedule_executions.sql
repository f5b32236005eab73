-- Purpose: a page of the executions of a schedule's version, by slot, the newest first.
-- Invariant: one descent of the index on schedules for each partition. A slot that the
-- overlap rule gave to another job has none. Raises: nothing.
create or replace function jobq_private.schedule_executions(
    schedule_id uuid, before uuid, max_executions integer
)
returns table (item json, cursor uuid)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    _before constant timestamptz := coalesce((
        select j.slot_at from jobq.job as j where j.job_id = schedule_executions.before
    ), 'infinity');
begin
    return query
    select
        jobq_private.execution_document(p.job),
        case when p.n < count(*) over () then (p.job).job_id end
    from (
        select j as job, row_number() over (order by j.slot_at desc) as n
        from jobq.job as j
        where j.schedule_id = schedule_executions.schedule_id
        and j.slot_at < _before
        order by j.slot_at desc
        limit schedule_executions.max_executions + 1
    ) as p
    order by p.n
    limit schedule_executions.max_executions;
end
$$;

revoke all on function jobq_private.schedule_executions(uuid, uuid, integer)
from public;

comment on function jobq_private.schedule_executions(uuid, uuid, integer) is
'Returns a page of the executions of a schedule''s version, the newest first.';
