-- Revert jobq:private/hold_key from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.hold_key;

commit;
