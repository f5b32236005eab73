-- Purpose: the hook on_look() of a full installation: do first what has to follow from jobs that
-- ended; jobs with keys are work, too.
-- Invariant: see sql/work/private/on_look.sql. If no key has work anywhere, the queues are not asked
-- for theirs.
create or replace function jobq_private.on_look(queues text[])
returns text[]
language plpgsql
as $$
declare
    _has_keys boolean;
begin
    if exists (select from jobq_private.pending as l where l.due_at <= clock_timestamp()) then
        perform jobq_private.resolve();
    end if;
    if cardinality(queues) <= 16 then
        return queues;
    end if;
    _has_keys := exists (select from jobq_private.waiting_key as w);
    return array(
        select q.queue
        from unnest(on_look.queues) with ordinality as q (queue, n)
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
