-- Revert jobq:private/jobs_ahead from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.jobs_ahead;

commit;
