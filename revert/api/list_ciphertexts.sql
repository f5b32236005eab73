-- Revert jobq:api/list_ciphertexts from pg
begin;
set local role jobq_owner;

drop function if exists jobq.list_ciphertexts;

commit;
