-- Revert jobq:api/act_for from pg
begin;
set local role jobq_owner;

drop function if exists jobq.act_for;

commit;
