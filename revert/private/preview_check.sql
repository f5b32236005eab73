-- Revert jobq:private/preview_check from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.preview_check;

commit;
