-- Purpose: when the first job of a queue that waits only for time is due; null if none waits.
-- Invariant: one index probe for each priority in use, or a scan if these are too many. Callers
-- pin the planner's settings.
create or replace function jobq_private.first_due(queue text, except_kinds text[])
returns timestamptz language plpgsql stable as $$
declare
    _now constant timestamptz := clock_timestamp();
    _hint constant jobq_private.claim_hint := jobq_private.read_hint(first_due.queue, _now);
begin
    if _hint.priorities is null then
        return (
            select min(j.due_at)
            from jobq_private.job as j
            where j.queue = first_due.queue
            and j.state in ('queued', 'retrying')
            and j.due_at is not null
            and (first_due.except_kinds is null or j.kind <> all(first_due.except_kinds))
        );
    end if;
    return (
        select min(f.due_at)
        from unnest(_hint.priorities, _hint.watermarks) as p (priority, watermark)
        cross join lateral (
            select j.due_at
            from jobq_private.job as j
            where j.queue = first_due.queue
            and j.state in ('queued', 'retrying')
            and j.priority = p.priority
            and j.due_at >= p.watermark
            and (first_due.except_kinds is null or j.kind <> all(first_due.except_kinds))
            order by j.due_at, j.job_id
            limit 1
        ) as f
    );
end
$$;
