-- Revert jobq:private/moment_in from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.moment_in;

commit;
