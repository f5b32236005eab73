-- Revert jobq:private/tell_ended from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.tell_ended;

commit;
