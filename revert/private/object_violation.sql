-- Revert jobq:private/object_violation from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.object_violation;

commit;
