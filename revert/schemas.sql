-- Revert jobq:schemas from pg
begin;

alter default privileges for role jobq_owner grant execute on functions to public;
drop schema jobq_private;
drop schema jobq_http;
drop schema jobq_internal;
drop schema jobq;

-- The roles stay: they belong to the cluster, and another database may use them.

commit;
