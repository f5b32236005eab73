-- Revert jobq:private/check_claim from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.check_claim;

commit;
