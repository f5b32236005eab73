-- Purpose: those of many queues in which a claim may find something, in their order.
-- Invariant: if no key has work anywhere, the queues are not asked for theirs.
create or replace function jobq_private.with_work(queues text[])
returns text[] language plpgsql as $$
declare
    _has_keys constant boolean := exists (select from jobq_private.waiting_key as w);
begin
    return array(
        select q.queue
        from unnest(with_work.queues) with ordinality as q (queue, n)
        where (
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
                where w.queue = q.queue and w.full_kind is not null
            )
        )
        order by q.n
    );
end
$$;
