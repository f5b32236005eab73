-- Revert jobq:api/maintain from pg
begin;
set local role jobq_owner;

drop function if exists jobq.maintain;

commit;
