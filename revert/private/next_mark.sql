-- Revert jobq:private/next_mark from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.next_mark;

commit;
