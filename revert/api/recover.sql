-- Revert jobq:api/recover from pg
begin;
set local role jobq_owner;

drop function if exists jobq.recover;

commit;
