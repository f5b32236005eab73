-- Purpose: the listening session of a worker says that it is awake, or that of a client
-- that it waits for no job.
-- Invariant: drops every advisory lock of its session, so the session must be a
-- listener and nothing else. Raises: nothing.
-- Example: select jobq.end_wait();
create or replace function jobq.end_wait()
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select pg_advisory_unlock_all()
$$;

grant execute on function jobq.end_wait
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.end_wait is
'Ends the waiting of the session, so that it is no longer notified.';
