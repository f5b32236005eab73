-- Revert jobq:private/server_health from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.server_health;

commit;
