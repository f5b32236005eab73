-- Revert jobq:private/has_failed from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.has_failed;

commit;
