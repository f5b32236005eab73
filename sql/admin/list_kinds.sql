-- Purpose: Lists the declared kinds and their settings.
-- Invariant: reads only. Raises: nothing.
-- Returns: rows of jobq.kind, by name.
-- Example: select kind, queue, timeout from jobq_internal.list_kinds();
create or replace function jobq_internal.list_kinds()
returns setof jobq.kind language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select v.* from jobq.kind as v order by v.kind
$$;
grant execute on function jobq_internal.list_kinds to jobq_operator, jobq_reader;
