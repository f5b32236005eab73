-- Verify jobq:view/audit on pg
begin;

select * from jobq.audit where false;

select 1 / (not has_table_privilege('public', 'jobq.audit', 'select'))::int;

rollback;
