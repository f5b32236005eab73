-- Revert jobq:private/schedule_follow from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.schedule_follow;

commit;
