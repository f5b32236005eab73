-- Revert jobq:private/retry_policy_for from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.retry_policy_for;

commit;
