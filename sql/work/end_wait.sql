-- Purpose: the listening session of a worker says that it is awake, or that of a client
-- that it waits for no job.
-- Invariant: drops every advisory lock of its session, so the session must be a
-- listener and nothing else. Raises: nothing.
-- Example: select jobq.end_wait();
create or replace function jobq.end_wait()
returns void
language sql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select pg_advisory_unlock_all()
$$;

revoke all on function jobq.end_wait from public;
grant execute on function jobq.end_wait
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.end_wait is
'Marks the listening session as awake or waiting for no job, so that nobody need notify it.';
