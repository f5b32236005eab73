-- Purpose: Lists workers, when they were last seen, and how many jobs they run.
-- Invariant: reads only. Raises: nothing.
-- Returns: rows of jobq.worker, by name.
-- Example: select worker, jobs from jobq_internal.list_workers() where is_live;
create or replace function jobq_internal.list_workers()
returns setof jobq.worker language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
    select w.* from jobq.worker as w order by w.worker
$$;
grant execute on function jobq_internal.list_workers to jobq_operator, jobq_reader;
