-- Revert jobq:private/schedule_find from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.schedule_find;

commit;
