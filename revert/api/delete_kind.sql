-- Revert jobq:api/delete_kind from pg
begin;
set local role jobq_owner;

drop function if exists jobq.delete_kind;

commit;
