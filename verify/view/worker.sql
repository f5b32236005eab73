-- Verify jobq:view/worker on pg
begin;

select * from jobq.worker where false;

select 1 / (not has_table_privilege('public', 'jobq.worker', 'select'))::int;

rollback;
