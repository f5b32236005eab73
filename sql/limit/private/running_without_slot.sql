-- Purpose: the running jobs without a slot that limits may have to count.
-- Invariant: a change of limits waits for no transaction, so jobs that started before it, or in a
-- transaction that was open then, are counted one by one until number_running() gives them slots.
-- Reads one row while limit_change has only its first.
create or replace function jobq_private.running_without_slot()
returns setof jobq_private.job language sql stable as $$
    select j.*
    from jobq_private.job as j
    where exists (select from jobq_private.limit_change as c where c.change_id > 1)
    and j.state = 'running'
    and j.slot is null
    and (
        j.concurrency_key is not null
        or exists (
            select from jobq_private.queue as q where q.queue = j.queue and q.max_running is not null
        )
        or exists (
            select from jobq_private.kind as k where k.kind = j.kind and k.max_running is not null
        )
    )
$$;
