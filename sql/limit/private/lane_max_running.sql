-- Purpose: how many jobs may run in a lane: its limit, less what runs of a kind's key in other queues.
-- Invariant: exact for who holds the limit; null without a limit. Raises: nothing.
create or replace function jobq_private.lane_max_running(
    rule jobq_private.lane_rule, queue text, concurrency_key text, kind text
)
returns integer
language sql
stable
parallel safe
as $$
    select case
        when kind is null or rule.max_running is null then rule.max_running
        else greatest(
            0, rule.max_running - jobq_private.running_elsewhere(queue, concurrency_key, kind)
        )
    end
$$;
