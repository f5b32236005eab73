-- Revert jobq:private/schedule_store from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.schedule_store;

commit;
