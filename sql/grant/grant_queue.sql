-- Purpose: Grants a role the privilege enqueue or work for a queue, or * for all. Only
-- for jobq_owner.
-- Invariant: enqueue allows to add, see and cancel its jobs, work everything else. A grant
-- restricts queues, while EXECUTE restricts functions; a role needs both. Repeating a grant
-- changes nothing. Raises: 22004, 22023.
-- Argument queue: the queue, or * for all queues.
-- Example: select jobq.grant_queue('jobq_producer', 'mail', 'enqueue');
create or replace function jobq.grant_queue(grantee text, queue text, privilege text)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into jobq_private.queue_grant (grantee, queue, privilege)
    values (
        jobq_private.check_queue_grant(
            grant_queue.grantee, grant_queue.queue, grant_queue.privilege
        ),
        grant_queue.queue, grant_queue.privilege
    )
    on conflict do nothing;
end
$$;
