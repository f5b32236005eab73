-- Verify jobq:view/queue_grant on pg
begin;

select * from jobq.queue_grant where false;

select 1 / (not has_table_privilege('public', 'jobq.queue_grant', 'select'))::int;

rollback;
