-- Revert jobq:api/confirm_cancel from pg
begin;
set local role jobq_owner;

drop function if exists jobq.confirm_cancel;

commit;
