-- Purpose: the hook on_look() of a full installation: jobs with keys are work, too.
-- Invariant: see sql/work/private/on_look.sql. If no key has work anywhere, the queues are not asked
-- for theirs.
create or replace function jobq_private.on_look(queues text[])
returns setof text
language plpgsql
stable
as $$
declare
    _has_keys constant boolean := exists (select from jobq_private.waiting_key as w);
begin
    return query
    select q.queue
    from unnest(on_look.queues) with ordinality as q (queue, n)
    where q.n = 1
    or (
        select true
        from jobq_private.job as j
        where j.queue = q.queue
        and j.state in ('queued', 'retrying')
        and j.due_at is not null
        limit 1
    )
    or _has_keys and (
        exists (
            select from jobq_private.waiting_key as w
            where w.queue = q.queue and w.state <> 'full'
        )
        or exists (
            select from jobq_private.waiting_key as w
            where w.queue = q.queue and w.limit_id is not null
        )
    )
    order by q.n;
end
$$;
