-- Verify jobq:view/error on pg
begin;

select * from jobq.error where false;

select 1 / (not has_table_privilege('public', 'jobq.error', 'select'))::int;

rollback;
