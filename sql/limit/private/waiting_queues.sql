-- Purpose: after jobs of these kinds have ended in these queues: the queues in which others may start now
-- because of their kinds' limits: those in which lanes wait for a gate of them.
-- Invariant: a claim under way may be about to have lanes wait, which nobody sees yet: so
-- the queues in which jobs of such kinds have ended are among them in any case. Raises: nothing.
create or replace function jobq_private.waiting_queues(queues text[], kinds text[])
returns text[]
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select array_agg(distinct w.queue)
    from (
        select l.queue
        from jobq_private.gate as g
        join jobq_private.lane as l on l.gate_id = g.gate_id
        where g.kind = any (waiting_queues.kinds) and g.queue is null
        union all
        select e.queue
        from unnest(waiting_queues.queues, waiting_queues.kinds) as e (queue, kind)
        join jobq_private.gate as g on g.kind = e.kind and g.queue is null
    ) as w
$$;

revoke all on function jobq_private.waiting_queues from public;

comment on function jobq_private.waiting_queues is
'The queues in which others may start now after jobs of these kinds have ended.';
