-- Revert jobq:private/has_huge_number from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.has_huge_number;

commit;
