-- Verify jobq:view/job on pg
begin;

select * from jobq.job where false;

select 1 / (not has_table_privilege('public', 'jobq.job', 'select'))::int;

rollback;
