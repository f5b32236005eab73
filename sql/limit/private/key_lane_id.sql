-- Purpose: the lane of a concurrency key in a queue: that of its kind where this has limits for each key,
-- else that of the queue.
-- Invariant: a job is under one of the two alone. Begins with a hash of the queue, as lane_id(). Strict.
-- Raises: nothing.
create or replace function jobq_private.key_lane_id(queue text, concurrency_key text, kind text)
returns uuid
language plpgsql
stable
strict
parallel safe
as $$
begin
    if not exists (
        select from jobq_private.kind as k
        where k.kind = key_lane_id.kind
        and pg_catalog.num_nonnulls(k.key_max_running, k.key_rate_limit, k.ordered, k.key_budget) > 0
    ) then
        return jobq_private.lane_id(queue, concurrency_key);
    end if;
    return jobq_private.kind_lane_id(queue, kind, concurrency_key);
end
$$;
