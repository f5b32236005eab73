-- Revert jobq:private/raise_error from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.raise_error;

commit;
