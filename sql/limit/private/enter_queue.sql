-- Purpose: how many jobs a claim may start in a queue that has limits as a whole.
-- Invariant: the queue's limit is the caller's until the commit; zero while it is somebody
-- else's. Each look has a snapshot of its own. What the jobs cost is looked at by pass_limits().
-- Raises: nothing.
create or replace function jobq_private.enter_queue(
    queue text, wanted integer, now timestamptz
)
returns integer
language plpgsql
as $$
begin
    if jobq_private.lock_limits(
        queue, array[jobq_private.limit_id(queue, null)]
    ) = '{}' then
        return 0;
    end if;
    return least(wanted, (
        select r.room from jobq_private.limit_room(queue, null, enter_queue.now) as r
    ));
end
$$;
