-- Revert jobq:grant_tables from pg
begin;

drop table jobq_private.kind_queue;
drop table jobq_private.queue_grant;

commit;
