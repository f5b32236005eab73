-- Verify jobq:view/held_queue on pg
begin;

select * from jobq_private.held_queue where false;

select 1 / (not has_table_privilege('public', 'jobq_private.held_queue', 'select'))::int;

rollback;
