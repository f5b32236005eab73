-- Revert jobq:private/make_partition from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.make_partition;

commit;
