-- Revert jobq:private/store_job from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.store_job;

commit;
