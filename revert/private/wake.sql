-- Revert jobq:private/wake from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.wake;

commit;
