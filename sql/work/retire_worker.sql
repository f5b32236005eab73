-- Purpose: Removes a stopping worker from the list of workers.
-- Invariant: leases do not depend on it. Raises: nothing.
-- Example: select jobq.retire_worker('worker-1');
create or replace function jobq.retire_worker(worker text)
returns void language sql security definer set search_path = pg_catalog, pg_temp as $$
    delete from jobq_private.worker as w where w.worker = retire_worker.worker
$$;
grant execute on function jobq.retire_worker to jobq_worker;
