-- Revert jobq:api/due_in from pg
begin;
set local role jobq_owner;

drop function if exists jobq.due_in;

commit;
