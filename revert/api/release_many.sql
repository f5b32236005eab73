-- Revert jobq:api/release_many from pg
begin;
set local role jobq_owner;

drop function if exists jobq.release_many;

commit;
