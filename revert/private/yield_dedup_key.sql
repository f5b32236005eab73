-- Revert jobq:private/yield_dedup_key from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.yield_dedup_key;

commit;
