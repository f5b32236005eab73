-- Purpose: the grants by queue: all of them for logins that can act as jobq_owner,
-- their own for others.
-- Invariant: reads only; depends on the login, like held_queue. Raises: nothing.
create or replace view jobq.queue_grant as
select g.grantee::text as grantee, g.queue, g.privilege
from jobq_private.queue_grant as g
where pg_has_role(session_user, g.grantee, 'usage')
or pg_has_role(session_user, 'jobq_owner', 'usage');

grant select on jobq.queue_grant
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on view jobq.queue_grant is
'The caller''s grants by queue; the owner sees all.';
