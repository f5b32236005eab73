-- Purpose: Asks for notifications on jobq_events when any job ends, until end_wait().
-- The session must listen.
-- Invariant: LISTEN jobq_events must have committed before. Takes its locks (shared, session)
-- before the client reads once more with listen_events(). A transaction that ends jobs locks the
-- archive before it tests these locks, so one of the two sees the other. Raises: nothing.
-- Example: select jobq.await_events();
create or replace function jobq.await_events()
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_advisory_unlock_all();
    perform pg_advisory_lock_shared(jobq_private.lock_class('awaiting_events'), 0);
    perform pg_advisory_lock_shared(jobq_private.lock_class('awaiting'), 0);
end
$$;
grant execute on function jobq.await_events to jobq_operator, jobq_reader;
