-- Purpose: Ends the waiting of the session, so that it is no longer notified.
-- Invariant: releases every advisory lock of the session, so the session must be used only to
-- listen. Raises: nothing.
-- Example: select jobq.end_wait();
create or replace function jobq.end_wait()
returns void language sql security definer set search_path = pg_catalog, pg_temp as $$
    select pg_advisory_unlock_all()
$$;
grant execute on function jobq.end_wait to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
