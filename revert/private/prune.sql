-- Revert jobq:private/prune from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.prune;

commit;
