-- Revert jobq:view/held_queue from pg
begin;
set local role jobq_owner;

drop view if exists jobq_private.held_queue;

commit;
