-- Revert jobq:private/id_time from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.id_time;

commit;
