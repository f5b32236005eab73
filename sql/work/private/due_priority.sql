-- Purpose: the highest priority below this one that has a job of the queue due by then, or
-- null.
-- Invariant: from PostgreSQL 18 on one scan of job_ready_idx, which skips from priority to
-- priority by itself, and reads on where they lie close together; before, a probe for each
-- priority in use. Raises: nothing.
create or replace function jobq_private.due_priority(
    queue text, priority integer, by_then timestamptz
)
returns integer
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    -- Without skipping, a bound would have the scan read what lies between.
    _bound constant timestamptz := case
        when jobq_private.can_skip() then due_priority.by_then
        else 'infinity'
    end;
begin
    return (
        with recursive head as (
            select due_priority.priority, 'infinity'::timestamptz as run_at
            union all
            select h.priority, h.run_at
            from head as l
            cross join lateral (
                select j.priority::integer, j.run_at
                from jobq_private.job as j
                where j.queue = due_priority.queue
                and j.state in ('queued', 'retrying')
                and j.lane_id is null
                and j.priority < l.priority
                and j.run_at <= _bound
                order by j.priority desc, j.run_at
                limit 1
            ) as h
            where l.run_at > due_priority.by_then
        )
        select h.priority from head as h
        where h.run_at <= due_priority.by_then
        limit 1
    );
end
$$;

revoke all on function jobq_private.due_priority from public;

comment on function jobq_private.due_priority is
'Returns the highest priority below this one that has a job due, or null.';
