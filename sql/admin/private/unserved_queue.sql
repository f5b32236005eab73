-- Purpose: queues whose jobs have been due for a minute without a live worker.
-- Invariant: reads only; checks a hundred queues at once for due jobs, and lists those
-- of the first five such hundreds, so the cost is bounded with ten thousand queues too.
create or replace view jobq_private.unserved_queue as
with part as (
    select array_agg(u.queue order by u.queue) as queues
    from (
        select w.queue, (row_number() over (order by w.queue) - 1) / 100 as number
        from jobq_private.waiting_queue as w
        where not exists (
            select from jobq_private.worker as k
            where jobq_private.serves(k.queues, w.queue) and k.seen_at > now() - interval '1 min'
        )
    ) as u
    group by u.number
),
due as (
    select p.queues
    from part as p
    where jobq_private.next_due(p.queues) < now() - interval '1 min'
    limit 5
)
select q.queue
from due as d
cross join lateral unnest(d.queues) as q (queue)
where jobq_private.next_due(array[q.queue]) < now() - interval '1 min';

comment on view jobq_private.unserved_queue is
'Queues whose jobs have been due for a minute while no live worker serves them, some 500 at most.';
