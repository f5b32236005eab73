-- Revert jobq:api/redrive_many from pg
begin;
set local role jobq_owner;

drop function if exists jobq.redrive_many;

commit;
