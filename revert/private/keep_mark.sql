-- Revert jobq:private/keep_mark from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.keep_mark;

commit;
