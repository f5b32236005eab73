-- Revert jobq:private/lost_job from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.lost_job;

commit;
