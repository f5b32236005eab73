-- Purpose: Lists the declared queues and their settings.
-- Invariant: reads only. Raises: nothing.
-- Returns: rows of jobq.queue, by name.
-- Example: select queue, max_depth from jobq_internal.list_queues();
create or replace function jobq_internal.list_queues()
returns setof jobq.queue language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
    select v.* from jobq.queue as v order by v.queue
$$;
grant execute on function jobq_internal.list_queues to jobq_operator, jobq_reader;
