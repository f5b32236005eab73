-- Revert jobq:private/is_paused from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.is_paused;

commit;
