-- Verify jobq:table/error on pg
select 1 / (count(*) > 0)::int from jobq_private.error;
