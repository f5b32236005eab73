-- Verify jobq:view/definition on pg
begin;

select * from jobq_private.definition where false;

select 1 / (not has_table_privilege('public', 'jobq_private.definition', 'select'))::int;

rollback;
