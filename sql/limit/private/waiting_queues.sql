-- Purpose: after jobs of these kinds have ended in these queues: the queues in which others may start now
-- because of their kinds' limits: those in which lanes wait for a gate of them.
-- Invariant: a claim under way may be about to have lanes wait, which nobody sees yet: so
-- the queues in which jobs of such kinds have ended are among them in any case. Each gate is looked up
-- by itself, whatever the statistics say. Raises: nothing.
create or replace function jobq_private.waiting_queues(queues text[], kinds text[])
returns text[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
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
            select g.gate_id from jobq_private.gate as g
            where g.kind = e.kind and g.queue is null
            offset 0
        ) as g
        cross join lateral (
            select e.queue
            union all
            select l.queue from jobq_private.lane as l where l.gate_id = g.gate_id
        ) as w
    );
end
$$;

revoke all on function jobq_private.waiting_queues from public;

comment on function jobq_private.waiting_queues is
'The queues in which others may start now after jobs of these kinds have ended.';
