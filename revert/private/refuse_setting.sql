-- Revert jobq:private/refuse_setting from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.refuse_setting;

commit;
