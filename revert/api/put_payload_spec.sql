-- Revert jobq:api/put_payload_spec from pg
begin;
set local role jobq_owner;

drop function if exists jobq.put_payload_spec;

commit;
