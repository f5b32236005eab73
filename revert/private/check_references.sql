-- Revert jobq:private/check_references from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.check_references;

commit;
