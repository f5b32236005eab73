-- Revert jobq:table/api_key from pg
begin;
drop table jobq_private.api_key;
commit;
