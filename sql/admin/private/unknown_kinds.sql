-- Purpose: kinds with a due job that no live worker of its queue has a handler for.
-- Invariant: reads only; checks kinds that a worker has seen, among the first 20,000 due
-- jobs of all queues, but at least 100 of each.
create or replace function jobq_private.unknown_kinds()
returns table (kind text, queue text) language sql stable as $$
    with lacking as materialized (
        select distinct w.queues, k.kind
        from jobq_private.live_worker as w
        cross join lateral unnest(w.except_kinds) as k (kind)
    ),
    asked as materialized (
        select q.queue
        from jobq_private.waiting_queue as q
        where exists (
            select from (select distinct l.queues from lacking as l) as s
            where jobq_private.serves(s.queues, q.queue)
        )
    ),
    share as (
        select greatest(100, 20000 / greatest(1, count(*)))::integer as most from asked
    )
    select m.kind, m.queue
    from (
        select distinct h.kind, a.queue
        from asked as a
        cross join share as s
        cross join lateral jobq_private.head_jobs(a.queue, s.most, statement_timestamp()) as h
        where h.kind in (select l.kind from lacking as l)
    ) as m
    where jobq_private.is_unknown(m.kind, m.queue)
    order by m.kind, m.queue
$$;
