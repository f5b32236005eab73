-- Revert jobq:grant from pg
-- Made by sql/snapshot.py from sql/grant/: edit that.
begin;
set local role jobq_owner;

drop trigger if exists kind_queue on jobq_private.kind;
drop function if exists jobq.revoke_queue;
drop function if exists jobq_private.check_queue_grant;

commit;
