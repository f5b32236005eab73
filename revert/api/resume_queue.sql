-- Revert jobq:api/resume_queue from pg
begin;
set local role jobq_owner;

drop function if exists jobq.resume_queue;

commit;
