-- Purpose: the listening session of a client says that it is about to sleep until a job ends.
-- Invariant: LISTEN jobq_events has committed before. The locks (shared, session) are taken
-- before the client looks once more with listen_events(): who ends jobs holds its lock of the
-- archive before it tests these, so that one of the two sees the other. Raises: nothing.
-- Returns: nothing.
-- Example: select jobq.await_events();
create or replace function jobq.await_events()
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_advisory_unlock_all();
    perform pg_advisory_lock_shared(jobq_private.lock_class('awaiting_events'), 0);
    perform pg_advisory_lock_shared(jobq_private.lock_class('awaiting'), 0);
end
$$;

grant execute on function jobq.await_events to jobq_operator, jobq_reader;

comment on function jobq.await_events is
'Asks for notifications on jobq_events when any job ends, until end_wait(). The session must listen.';
