-- Purpose: whether every live worker of a queue has seen this kind and has no handler for it.
-- Invariant: reads only; false without a worker for the queue, and for database
-- functions, which every worker can run.
create or replace function jobq_private.is_unknown(kind text, queue text)
returns boolean language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(bool_and(is_unknown.kind = any(w.except_kinds)), false)
    from jobq_private.live_worker as w
    where jobq_private.serves(w.queues, is_unknown.queue)
    and not exists (
        select from jobq_private.kind as k where k.kind = is_unknown.kind and k.run is not null
    )
$$;
