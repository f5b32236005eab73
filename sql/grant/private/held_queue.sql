-- Purpose: the queues that the login may use: one row, for the policies.
-- Invariant: depends on session_user, which only a superuser can change, and on the
-- roles whose privileges it has; settings and SET ROLE do not count. Logins that can
-- act as jobq_owner hold all queues, since they could grant themselves any. An array is
-- null, and so matches nothing, if the login holds none.
create or replace view jobq_private.held_queue as
select
    array_agg(g.queue) as any_of,
    array_agg(g.queue) filter (where g.privilege = 'enqueue') as enqueued,
    array_agg(g.queue) filter (where g.privilege = 'work') as worked
from (
    select q.queue, q.privilege
    from jobq_private.queue_grant as q
    where pg_has_role(session_user, q.grantee, 'usage')
    union all
    select '*', p.privilege
    from (values ('enqueue'), ('work')) as p (privilege)
    where pg_has_role(session_user, 'jobq_owner', 'usage')
) as g;
