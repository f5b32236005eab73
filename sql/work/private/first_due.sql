-- Purpose: when the first job of a queue that waits only for time is due; null if none waits.
-- Invariant: one index probe for each priority in use. Callers pin the planner's settings.
create or replace function jobq_private.first_due(queue text, except_kinds text[])
returns timestamptz
language plpgsql
stable
as $$
declare
    _hint constant jobq_private.claim_hint := jobq_private.read_hint(
        first_due.queue, clock_timestamp()
    );
begin
    if _hint.priorities is null then
        return (
            with recursive head (priority, due_at) as (
                select 32768, null::timestamptz
                union all
                select n.*
                from head as h
                cross join lateral (
                    select j.priority::integer, j.due_at
                    from jobq_private.job as j
                    where j.queue = first_due.queue
                    and j.state in ('queued', 'retrying')
                    and j.due_at is not null
                    and j.priority < h.priority
                    and (first_due.except_kinds is null or j.kind <> all(first_due.except_kinds))
                    order by j.priority desc, j.due_at, j.job_id
                    limit 1
                ) as n
            )
            select min(h.due_at) from head as h
        );
    end if;
    return (
        select min(f.due_at)
        from unnest(_hint.priorities, _hint.fronts) as p (priority, front)
        cross join lateral (
            select j.due_at
            from jobq_private.job as j
            where j.queue = first_due.queue
            and j.state in ('queued', 'retrying')
            and j.priority = p.priority
            and j.due_at >= p.front
            and (first_due.except_kinds is null or j.kind <> all(first_due.except_kinds))
            order by j.due_at, j.job_id
            limit 1
        ) as f
    );
end
$$;
