-- Revert jobq:trigger/kind_queue from pg
begin;
set local role jobq_owner;

drop trigger if exists kind_queue on jobq_private.kind;
drop function if exists jobq_private.copy_kind_queue;

commit;
