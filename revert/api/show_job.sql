-- Revert jobq:api/show_job from pg
begin;
set local role jobq_owner;

drop function if exists jobq.show_job;

commit;
