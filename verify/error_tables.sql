-- Verify jobq:error_tables on pg
begin;

select 1 / (count(*) > 0)::int from jobq_private.error;

rollback;
