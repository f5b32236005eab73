-- Revert jobq:api/preview_schedule from pg
begin;
set local role jobq_owner;

drop function if exists jobq.preview_schedule;

commit;
