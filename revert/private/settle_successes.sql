-- Revert jobq:private/settle_successes from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.settle_successes;

commit;
