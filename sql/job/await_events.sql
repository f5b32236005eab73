-- Purpose: the listening session of a client says that it is about to sleep until a job ends.
-- Invariant: LISTEN jobq_events has committed before. The locks (shared, session) are taken
-- before the client looks once more with listen_events(): who ends jobs holds its lock of the
-- archive before it tests these, so that one of the two sees the other. Raises: nothing.
-- Returns: nothing.
-- Example: select jobq.await_events();
create or replace function jobq.await_events()
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _ending constant integer := jobq_private.lock_class('ending');
    _any_job constant integer := 1024;
    _any_event constant integer := 1025;
begin
    perform pg_advisory_unlock_all();
    perform pg_advisory_lock_shared(_ending, _any_event);
    perform pg_advisory_lock_shared(_ending, _any_job);
end
$$;

revoke all on function jobq.await_events from public;
grant execute on function jobq.await_events to jobq_operator, jobq_reader;

comment on function jobq.await_events is
'Has the listening session notified on jobq_events when any job ends, until end_wait().';
