-- Purpose: Returns the time until the next slot of any schedule, or null if there is
-- none.
-- Invariant: a duration by the database's clock; reads one index entry. A
-- from_completion schedule is included only after its job has ended and tick() was
-- called. Raises: nothing.
-- Returns: zero or less if a slot is due, null if there is none.
-- Example: select jobq_internal.tick_in();
create or replace function jobq_internal.tick_in()
returns interval
language sql
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
    select jobq_private.tick_due() - clock_timestamp()
$$;

grant execute on function jobq_internal.tick_in to jobq_worker, jobq_operator, jobq_reader;
