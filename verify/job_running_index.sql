-- Verify jobq:job_running_index on pg
begin;

select 1 / count(*) from pg_index where indexrelid = to_regclass('jobq_private.job_kind_running_idx');

rollback;
