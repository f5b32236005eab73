-- Purpose: how many jobs a claim may start in a queue that has limits as a whole.
-- Invariant: the queue's gate is the caller's until the commit; zero while it is somebody
-- else's. Each look has a snapshot of its own. Raises: nothing.
create or replace function jobq_private.enter_queue(
    queue text, wanted integer, now timestamptz
)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if jobq_private.hold_gates(
        queue, array[jobq_private.gate_id(queue, null)]
    ) = '{}' then
        return 0;
    end if;
    return least(
        wanted, (select r.room from jobq_private.gate_room(queue, null, enter_queue.now) as r)
    );
end
$$;

revoke all on function jobq_private.enter_queue from public;

comment on function jobq_private.enter_queue is
'How many jobs a claim may start in a queue that has limits as a whole.';
