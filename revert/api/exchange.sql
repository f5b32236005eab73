-- Revert jobq:api/exchange from pg
begin;
set local role jobq_owner;

drop function if exists jobq.exchange;

commit;
