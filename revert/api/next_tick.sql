-- Revert jobq:api/next_tick from pg
begin;
set local role jobq_owner;

drop function if exists jobq.next_tick;

commit;
