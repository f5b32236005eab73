-- Revert jobq:api/cancel from pg
begin;
set local role jobq_owner;

drop function if exists jobq.cancel;

commit;
