-- Revert jobq:private/milliseconds from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.milliseconds;

commit;
