-- Revert jobq:api/delete_endpoint from pg
begin;
set local role jobq_owner;

drop function if exists jobq.delete_endpoint;

commit;
