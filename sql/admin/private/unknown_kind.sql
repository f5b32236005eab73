-- Purpose: kinds with a due job that no live worker of its queue has a handler for.
-- Invariant: reads only; checks kinds that a worker has seen, among the first 10,000
-- jobs of each queue.
create or replace view jobq_private.unknown_kind as
select m.kind, m.queue
from (
    select distinct k.kind, q.queue
    from jobq_private.worker as w
    cross join lateral unnest(w.except_kinds) as k (kind)
    cross join lateral unnest(jobq_private.match_queues(w.queues)) as q (queue)
    where w.seen_at > now() - interval '1 min'
) as m
where jobq_private.is_unknown(m.kind, m.queue)
and exists (
    select
    from (
        select j.kind
        from jobq_private.job as j
        where j.queue = m.queue and j.state in ('queued', 'retrying') and j.run_at <= now()
        order by j.priority desc, j.run_at
        limit 10000
    ) as f
    where f.kind = m.kind
);

comment on view jobq_private.unknown_kind is
'Kinds with a job that is due, which no live worker of its queue has a handler for.';
