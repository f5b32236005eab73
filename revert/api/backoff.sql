-- Revert jobq:api/backoff from pg
begin;
set local role jobq_owner;

drop function if exists jobq.backoff;

commit;
