-- Revert jobq:api/put_kind from pg
begin;
set local role jobq_owner;

drop function if exists jobq.put_kind;

commit;
