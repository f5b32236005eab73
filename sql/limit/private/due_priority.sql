-- Purpose: the highest priority below this one at which a job of the queue is due, or null.
-- Invariant: locks nothing. Its callers pin the search path and the planner's settings. Raises:
-- nothing.
create or replace function jobq_private.due_priority(
    queue text, below integer, except_kinds text[]
)
returns integer
language plpgsql
stable
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _hint constant jobq_private.claim_hint := jobq_private.read_hint(due_priority.queue, _now);
begin
    if _hint.priorities is null then
        return (
            select j.priority
            from jobq_private.job as j
            where j.queue = due_priority.queue
            and j.state in ('queued', 'retrying')
            and j.priority < due_priority.below
            and j.due_at <= _now
            and (due_priority.except_kinds is null or j.kind <> all(due_priority.except_kinds))
            order by j.priority desc, j.due_at, j.job_id
            limit 1
        );
    end if;
    return (
        select max(p.priority)
        from unnest(_hint.priorities, _hint.fronts) as p (priority, front)
        where p.priority < due_priority.below
        and exists (
            select from jobq_private.job as j
            where j.queue = due_priority.queue
            and j.state in ('queued', 'retrying')
            and j.priority = p.priority
            and j.due_at between p.front and _now
            and (due_priority.except_kinds is null or j.kind <> all(due_priority.except_kinds))
        )
    );
end
$$;
