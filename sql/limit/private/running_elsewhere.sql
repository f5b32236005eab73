-- Purpose: how many jobs of a kind's key run in other lanes than that of this queue: in other queues, or
-- started before the kind had a limit for each key.
-- Invariant: exact for who holds the limit of the key. Hot: its callers pin the search path, and that no plan
-- is made for a call. Raises: nothing.
create or replace function jobq_private.running_elsewhere(
    queue text, concurrency_key text, kind text
)
returns integer
language plpgsql
stable
strict
parallel safe
as $$
declare
    _lane_id constant uuid := jobq_private.kind_lane_id(queue, kind, concurrency_key);
begin
    return (
        select count(*) from jobq_private.job as j
        where j.kind = running_elsewhere.kind
        and j.concurrency_key = running_elsewhere.concurrency_key
        and j.place is not null and j.lane_id <> _lane_id
    ) + (
        select count(*) from jobq_private.uncounted() as u
        where u.kind = running_elsewhere.kind
        and u.concurrency_key = running_elsewhere.concurrency_key
        and u.lane_id <> _lane_id
    );
end
$$;
