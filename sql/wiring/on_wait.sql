-- Purpose: the hook on_wait() of a full installation: jobs with keys are due, too; limits of
-- whole queues hold jobs up, and what jobs that have ended may release is due for all queues.
-- Invariant: see sql/work/private/on_wait.sql. One more probe for each queue's keys. If
-- no key has work anywhere, many queues are not asked for theirs.
create or replace function jobq_private.on_wait(queues text[], except_kinds text[])
returns timestamptz language plpgsql stable set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    _now constant timestamptz := clock_timestamp();
    _has_keys constant boolean := cardinality(queues) <= 16
        or exists (select from jobq_private.waiting_key as w);
begin
    return least(
        (
            select min(greatest(d.due_at, p.opens_at))
            from unnest(on_wait.queues) as q (queue)
            cross join lateral (
                select least(
                    jobq_private.first_due(q.queue, on_wait.except_kinds),
                    case when _has_keys then jobq_private.next_key(q.queue, on_wait.except_kinds) end
                )
                offset 0  -- evaluated once
            ) as d (due_at)
            left join lateral jobq_private.opening(q.queue, _now) as p (opens_at)
                on d.due_at is not null
            where d.due_at is not null
        ),
        (
            select min(greatest(
                nullif(l.due_at, '-infinity'),
                -- Somebody may be at it, in a transaction that lasts.
                _now + least(
                    greatest((_now - greatest(l.due_at, l.created_at)) / 256, interval '10 ms'),
                    interval '1 s'
                )
            ))
            from jobq_private.pending as l
            where jobq_private.worked_queues() is null
        )
    );
end
$$;
