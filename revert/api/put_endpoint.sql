-- Revert jobq:api/put_endpoint from pg
begin;
set local role jobq_owner;

drop function if exists jobq.put_endpoint;

commit;
