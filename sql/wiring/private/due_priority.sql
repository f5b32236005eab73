-- Purpose: the highest priority below this one at which a job without a key is due;
-- null for none.
-- Invariant: one index probe for each priority that the session remembers, from where
-- its jobs begin, or a scan if these are too many. Callers pin the planner's settings.
create or replace function jobq_private.due_priority(
    queue text, below integer, except_kinds text[], kinds text[]
)
returns integer language plpgsql as $$
declare
    _now constant timestamptz := clock_timestamp();
    _hint jobq_private.claim_hint := jobq_private.read_hint(due_priority.queue, _now);
    _priority integer;
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
            and (due_priority.kinds is null or j.kind = any(due_priority.kinds))
            order by j.priority desc, j.due_at, j.job_id
            limit 1
        );
    end if;
    -- the highest come first; a loop over them stops at one
    select p.priority into _priority
    from unnest(_hint.priorities, _hint.watermarks) as p (priority, watermark)
    cross join lateral (
        select
        from jobq_private.job as j
        where j.queue = due_priority.queue
        and j.state in ('queued', 'retrying')
        and j.priority = p.priority
        and j.due_at between p.watermark and _now
        and (due_priority.except_kinds is null or j.kind <> all(due_priority.except_kinds))
        and (due_priority.kinds is null or j.kind = any(due_priority.kinds))
        limit 1
    ) as f
    where p.priority < due_priority.below
    limit 1;
    if _priority is null and _now >= _hint.refresh_at then
        _hint := jobq_private.keep_hint(_hint, _now);
    end if;
    return _priority;
end
$$;
