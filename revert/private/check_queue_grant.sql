-- Revert jobq:private/check_queue_grant from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.check_queue_grant;

commit;
