-- Purpose: The caller's grants by queue; the owner sees all.
-- Invariant: reads only; depends on the login, like held_queue. Raises: nothing.
create or replace view jobq.queue_grant as
select g.grantee::text as grantee, g.queue, g.privilege
from jobq_private.queue_grant as g
where pg_has_role(session_user, g.grantee, 'usage')
or pg_has_role(session_user, 'jobq_owner', 'usage');

grant select on jobq.queue_grant to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
