-- Revert jobq:http_tables from pg
begin;

drop table jobq_private.api_key;

commit;
