-- Revert jobq:private/queue_health from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.queue_health;

commit;
