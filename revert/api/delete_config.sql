-- Revert jobq:api/delete_config from pg
begin;
set local role jobq_owner;

drop function if exists jobq.delete_config;

commit;
