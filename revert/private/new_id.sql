-- Revert jobq:private/new_id from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.new_id;

commit;
