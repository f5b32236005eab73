-- Revert jobq:private/schedule_next from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.schedule_next;

commit;
