-- Revert jobq:api/put_config from pg
begin;
set local role jobq_owner;

drop function if exists jobq.put_config;

commit;
