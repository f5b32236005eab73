-- Purpose: for how long a worker of these queues may sleep: until the next job is due.
-- Invariant: a duration by the database's clock, so that no worker's own clock matters;
-- zero or less when there is work now, null when none waits. Raises: 22004.
-- Returns: how long until the next job is due; zero or less when there is work now,
-- null when none waits.
-- Example: select jobq.due_in('{default}');
create or replace function jobq.due_in(queues text[])
returns interval
language plpgsql
volatile
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return jobq.next_due(due_in.queues) - clock_timestamp();
end
$$;

revoke all on function jobq.due_in from public;
grant execute on function jobq.due_in to jobq_worker, jobq_reader;

comment on function jobq.due_in is
'Returns how long it is until the next job of these queues becomes runnable, or null when none waits.';
