-- Revert jobq:api/explain from pg
begin;
set local role jobq_owner;

drop function if exists jobq.explain;

commit;
