-- Revert jobq:private/check_new_job from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.check_new_job;

commit;
