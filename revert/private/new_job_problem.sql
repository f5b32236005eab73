-- Revert jobq:private/new_job_problem from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.new_job_problem;

commit;
