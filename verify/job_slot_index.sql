-- Verify jobq:job_slot_index on pg
begin;

select 1 / count(*) from pg_index where indexrelid = to_regclass('jobq_private.job_slot_kind_idx');

rollback;
