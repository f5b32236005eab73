-- Purpose: Lists which kinds have subscribed to which events.
-- Invariant: reads only. Raises: nothing.
-- Column event: the name of the event.
-- Column queue: the queue of the jobs; null means the kind's.
-- Column created_at: when the kind subscribed.
-- Returns: a row for each subscription, by event and kind.
-- Example: select event, kind from jobq_internal.list_subscriptions();
create or replace function jobq_internal.list_subscriptions()
returns table (event text, kind text, queue text, created_at timestamptz) language sql stable
security definer set search_path = pg_catalog, pg_temp as $$
    select s.event, s.kind, s.queue, s.created_at
    from jobq_private.subscription as s
    order by s.event, s.kind
$$;
grant execute on function jobq_internal.list_subscriptions to jobq_operator, jobq_reader;
