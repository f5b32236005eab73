-- Purpose: so many jobs of a queue that has limits as a whole have started.
-- Invariant: the caller holds the queue's gate. It is written to even without a rate, so that a
-- repeatable snapshot that has not seen these starts fails at the gate. Raises: nothing.
create or replace function jobq_private.charge_queue(queue text, jobs integer)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    update jobq_private.gate as g
    set passed_until = jobq_private.spent(
        g.passed_until, jobq_private.spacing(q.rate_limit, q.rate_period),
        coalesce(q.rate_burst, 1), charge_queue.jobs, clock_timestamp()
    )
    from jobq_private.queue as q
    where q.queue = charge_queue.queue
    and g.gate_id = jobq_private.gate_id(q.queue, null)
    and charge_queue.jobs > 0
$$;

revoke all on function jobq_private.charge_queue from public;

comment on function jobq_private.charge_queue is
'So many jobs of a queue that has limits as a whole have started.';
