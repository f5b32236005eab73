-- Purpose: for how long tick() has nothing to do: until the next slot of a schedule,
-- or until one that could not fire is tried again.
-- Invariant: a duration by the database's clock; reads one entry of an index. A schedule
-- that counts from completion is not known of before its job has ended and tick() was
-- called. Raises: nothing.
-- Returns: zero or less if a slot is due, null if there is none.
-- Example: select jobq_internal.tick_in();
create or replace function jobq_internal.tick_in()
returns interval
language sql
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
    select min(s.due_at) - clock_timestamp()
    from jobq_private.due_schedule as s
$$;

grant execute on function jobq_internal.tick_in to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.tick_in is
'Returns the time until the next slot of any schedule, or null if there is none.';
