-- Revert jobq:api/submit_schedule from pg
begin;
set local role jobq_owner;

drop function if exists jobq.submit_schedule;

commit;
