-- Revert jobq:private/maintain_partitions from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.maintain_partitions;

commit;
