-- Purpose: Lists the caller's grants by queue; the owner sees all.
-- Invariant: reads only; depends on the login, like jobq.queue_grant. Raises: nothing.
-- Column queue: the queue, or * for all queues.
-- Example: select * from jobq_internal.list_queue_grants();
create or replace function jobq_internal.list_queue_grants()
returns table (grantee text, queue text, privilege text) language sql stable parallel restricted
security definer set search_path = pg_catalog, pg_temp as $$
    select g.grantee, g.queue, g.privilege
    from jobq.queue_grant as g
    order by g.grantee, g.queue, g.privilege
$$;
grant execute on function jobq_internal.list_queue_grants
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
