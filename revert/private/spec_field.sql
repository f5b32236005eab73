-- Revert jobq:private/spec_field from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.spec_field;

commit;
