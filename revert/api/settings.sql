-- Revert jobq:api/settings from pg
begin;
set local role jobq_owner;

drop function if exists jobq.settings;

commit;
