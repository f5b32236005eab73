-- Purpose: the hook on_look() of a full installation: jobs with keys are work, too;
-- limits of whole queues hold it up, and what jobs that have ended may release is due
-- for all queues.
-- Invariant: see sql/work/private/on_look.sql. One more probe for each queue's keys. If
-- no key has work anywhere, many queues are not asked for theirs.
create or replace function jobq_private.on_look(
    queues text[], except_kinds text[], is_now boolean
)
returns table (queue text, due_at timestamptz)
language plpgsql
stable
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    _has_keys constant boolean := cardinality(queues) <= 16
        or exists (select from jobq_private.waiting_key as w);
    _now constant timestamptz := clock_timestamp();
begin
    if is_now then
        return query
        select q.queue, null::timestamptz
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
        return;
    end if;
    return query
    select q.queue, case
        when p.is_limited then greatest(d.due_at, p.opens_at)
        else d.due_at
    end
    from unnest(on_look.queues) as q (queue)
    cross join lateral (
        select least(
            jobq_private.first_due(q.queue, on_look.except_kinds),
            case when _has_keys then jobq_private.next_key(q.queue, on_look.except_kinds) end
        )
    ) as d (due_at)
    left join lateral (
        select
            k.paused_at is not null as is_paused,
            r.queue is not null as is_limited, r.opens_at
        from jobq_private.queue as k
        left join lateral (
            select k.queue, case
                when coalesce(r.max_starts, 1) > 0 then '-infinity'
                else coalesce(r.opens_at, 'infinity')
            end as opens_at
            from jobq_private.check_limits(array[row(
                jobq_private.limit_id(k.queue, null, null), k.queue, null, null
            )::jobq_private.scope], _now) as r
            where num_nonnulls(k.max_running, k.rate_limit, k.budget) > 0
        ) as r on true
        where k.queue = q.queue and d.due_at is not null
    ) as p on true
    where d.due_at is not null and p.is_paused is not true
    union all
    select null, greatest(
        nullif(l.due_at, '-infinity'),
        -- Somebody may be at it, in a transaction that lasts.
        _now + least(
            greatest((_now - greatest(l.due_at, l.created_at)) / 256, interval '10 ms'),
            interval '1 s'
        )
    )
    from jobq_private.pending as l
    where jobq_private.worked_queues() is null;
end
$$;
