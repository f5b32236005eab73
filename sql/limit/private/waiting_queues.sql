-- Purpose: after jobs of these kinds have ended in these queues: the queues in which others may start now
-- because of their kinds' limits: those in which lanes wait for a limit of them.
-- Invariant: a claim under way may be about to have lanes wait, which nobody sees yet: so
-- the queues in which jobs of such kinds have ended are among them in any case. Each limit is looked up
-- by itself, whatever the statistics say. Raises: nothing.
create or replace function jobq_private.waiting_queues(queues text[], kinds text[])
returns text[]
language plpgsql
stable
parallel safe
set plan_cache_mode = force_generic_plan
as $$
begin
    return (
        select array_agg(distinct w.queue)
        from (
            select distinct e.queue, e.kind
            from unnest(waiting_queues.queues, waiting_queues.kinds) as e (queue, kind)
        ) as e
        cross join lateral (
            select g.limit_id from jobq_private.limit_state as g
            where g.kind = e.kind and g.queue is null
            offset 0
        ) as g
        cross join lateral (
            select e.queue
            union all
            select l.queue from jobq_private.lane as l where l.limit_id = g.limit_id
        ) as w
    );
end
$$;
