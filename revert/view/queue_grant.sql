-- Revert jobq:view/queue_grant from pg
begin;
set local role jobq_owner;

drop view if exists jobq.queue_grant;

commit;
