-- Purpose: Revokes a grant by queue. Only for jobq_owner.
-- Invariant: applies to the next call of every session. Only for jobq_owner. Repeating
-- it changes nothing. Raises: 22004, 22023.
-- Argument grantee: the role; for a dropped role, its number in
-- jobq_internal.list_queue_grants().
-- Argument queue: the queue, or * if * was granted.
-- Example: select jobq.revoke_queue('jobq_producer', 'mail', 'enqueue');
create or replace function jobq.revoke_queue(grantee text, queue text, privilege text)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _grantee regrole;
begin
    select g.grantee into _grantee
    from jobq_private.queue_grant as g
    where g.grantee::oid::text = revoke_queue.grantee
    and not exists (
        select from pg_catalog.pg_roles as r
        where r.oid = g.grantee or r.rolname = revoke_queue.grantee
    )
    limit 1;
    _grantee := coalesce(_grantee, jobq_private.check_queue_grant(
        revoke_queue.grantee, revoke_queue.queue, revoke_queue.privilege
    ));
    delete from jobq_private.queue_grant as g
    where g.grantee = _grantee
    and g.queue = revoke_queue.queue
    and g.privilege = revoke_queue.privilege;
end
$$;
