-- Revert jobq:api/get_delivery from pg
begin;
set local role jobq_owner;

drop function if exists jobq.get_delivery;

commit;
