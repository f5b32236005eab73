-- Revert jobq:private/schedule_hold from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.schedule_hold;

commit;
