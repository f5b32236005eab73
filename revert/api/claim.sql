-- Revert jobq:api/claim from pg
begin;
set local role jobq_owner;

drop function if exists jobq.claim;

commit;
