-- Purpose: how many jobs of a key may run at once in a queue: its own limit, else what the
-- queue says for each key; null for no limit.
-- Invariant: one row. No SET clause, so that it is inlined, and
-- offset 0, so that it is evaluated once. Raises: nothing.
create or replace function jobq_private.lane_limit(queue text, concurrency_key text)
returns setof integer
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select coalesce(
        (
            select l.max_running
            from jobq_private.key_limit as l
            where l.queue = lane_limit.queue
            and l.concurrency_key = lane_limit.concurrency_key
        ),
        (
            select q.key_max_running
            from jobq_private.queue as q
            where q.queue = lane_limit.queue
        )
    )
    offset 0
$$;

revoke all on function jobq_private.lane_limit from public;

comment on function jobq_private.lane_limit is
'How many jobs of a key may run at once in a queue.';
