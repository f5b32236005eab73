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
declare
    _room integer;
begin
    if jobq_private.hold_gates(
        queue, array[jobq_private.gate_id(queue, null)]
    ) = '{}' then
        return 0;
    end if;
    _room := (select r.room from jobq_private.gate_room(queue, null, enter_queue.now) as r);
    if _room = 0 then
        perform jobq_private.pull_back(
            jobq_private.gate_id(q.queue, null),
            jobq_private.spacing(q.rate_limit, q.rate_period), coalesce(q.rate_burst, 1),
            enter_queue.now
        )
        from jobq_private.queue as q
        where q.queue = enter_queue.queue and q.rate_limit is not null;
    end if;
    return least(wanted, _room);
end
$$;

revoke all on function jobq_private.enter_queue from public;

comment on function jobq_private.enter_queue is
'How many jobs a claim may start in a queue that has limits as a whole.';
