-- Purpose: hook: which of these queues a claim may find something in (is_now), in their order, or
-- when the next job of each is due. Paused queues have none. With is_now the first queue always
-- counts, so that each claim calls on_claim().
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
        order by q.n;
        return;
    end if;
    return query
    select q.queue, d.due_at
    from unnest(on_look.queues) as q (queue)
    cross join lateral (
        select jobq_private.first_due(q.queue, on_look.except_kinds)
    ) as d (due_at)
    where d.due_at is not null and not exists (
        select from jobq_private.queue as p where p.queue = q.queue and p.paused_at is not null
    );
end
$$;
