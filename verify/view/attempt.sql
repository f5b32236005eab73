-- Verify jobq:view/attempt on pg
begin;

select * from jobq.attempt where false;

select 1 / (not has_table_privilege('public', 'jobq.attempt', 'select'))::int;

rollback;
