-- Revert jobq:private/schedule_advance from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.schedule_advance;

commit;
