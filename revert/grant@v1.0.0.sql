-- Revert jobq:grant from pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

drop trigger if exists kind_queue on jobq_private.kind;
drop trigger if exists queue_grant_end_audit on jobq_private.queue_grant;
drop trigger if exists queue_grant_audit on jobq_private.queue_grant;
drop function if exists jobq_private.copy_kind_queue;
drop function if exists jobq.revoke_queue;
drop view if exists jobq.queue_grant;
drop function if exists jobq_internal.list_queue_grants;
drop function if exists jobq.grant_queue;
drop function if exists jobq.enforce_queue_grants;
drop function if exists jobq_private.worked_queues;
drop function if exists jobq_private.refuse_work;
drop function if exists jobq_private.refuse_job;
drop view if exists jobq_private.held_queue;
drop function if exists jobq_private.check_worked;
drop function if exists jobq_private.check_queue_grant;
drop function if exists jobq_private.check_author;

commit;
