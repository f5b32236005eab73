-- Verify jobq:view/schedule on pg
begin;

select * from jobq.schedule where false;

select 1 / (not has_table_privilege('public', 'jobq.schedule', 'select'))::int;

rollback;
