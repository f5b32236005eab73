-- Revert jobq:private/client_health from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.client_health;

commit;
