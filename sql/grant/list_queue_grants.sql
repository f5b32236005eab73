-- Purpose: which queues log-ins may use once grants by queue are enforced.
-- Invariant: reads only; as jobq.queue_grant, decided by who has logged in. Raises:
-- nothing.
-- Column queue: the queue, or * for all of them.
-- Example: select * from jobq.list_queue_grants();
create or replace function jobq.list_queue_grants()
returns table (grantee text, queue text, privilege text)
language sql
stable
parallel restricted
security definer
set search_path = pg_catalog, pg_temp
as $$
    select g.grantee, g.queue, g.privilege
    from jobq.queue_grant as g
    order by g.grantee, g.queue, g.privilege
$$;

revoke all on function jobq.list_queue_grants from public;
grant execute on function jobq.list_queue_grants
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_queue_grants is
'Lists which queues one may use once grants by queue are enforced; the owner sees everybody''s.';
