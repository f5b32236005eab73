-- Revert jobq:private/refuse_attempt from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.refuse_attempt;

commit;
