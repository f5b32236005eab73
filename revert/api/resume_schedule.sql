-- Revert jobq:api/resume_schedule from pg
begin;
set local role jobq_owner;

drop function if exists jobq.resume_schedule;

commit;
