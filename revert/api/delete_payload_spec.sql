-- Revert jobq:api/delete_payload_spec from pg
begin;
set local role jobq_owner;

drop function if exists jobq.delete_payload_spec;

commit;
