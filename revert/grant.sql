-- Revert jobq:grant from pg
-- Made by sql/snapshot.py from sql/grant/: edit that.
begin;
set local role jobq_owner;

drop trigger if exists kind_queue on jobq_private.kind;
drop function if exists jobq.revoke_queue;
drop function if exists jobq.list_queue_grants;
drop view if exists jobq.queue_grant;
drop function if exists jobq.grant_queue;
drop function if exists jobq.enforce_queue_grants;
drop function if exists jobq_private.refuse_job;
drop function if exists jobq_private.copy_kind_queue;
drop view if exists jobq_private.held_queue;
drop function if exists jobq_private.check_queue_grant;
drop function if exists jobq_private.check_author;

commit;
