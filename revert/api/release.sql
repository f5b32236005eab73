-- Revert jobq:api/release from pg
begin;
set local role jobq_owner;

drop function if exists jobq.release;

commit;
