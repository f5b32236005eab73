-- Purpose: Returns the release of the schema.
-- Invariant: the same as that of the Python package and the clients. Raises: nothing.
-- Returns: the version, as semver.org defines it.
-- Example: select jobq.version();
create or replace function jobq.version()
returns text language sql immutable parallel safe security definer
set search_path = pg_catalog, pg_temp as $$
    select '1.1.0'
$$;
grant execute on function jobq.version to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
