-- Purpose: tick() as a task of maintain().
-- Invariant: see tick(). Returns how many. Raises: nothing of its own.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT.
create or replace function jobq_private.tick_schedules(max_rows integer)
returns bigint language sql as $$
    select count(*) from jobq_internal.tick(max_rows)
$$;
