-- Revert jobq:api/next_due from pg
begin;
set local role jobq_owner;

drop function if exists jobq.next_due;

commit;
