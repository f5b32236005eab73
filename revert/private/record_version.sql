-- Revert jobq:private/record_version from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.record_version;

commit;
