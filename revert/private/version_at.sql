-- Revert jobq:private/version_at from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.version_at;

commit;
