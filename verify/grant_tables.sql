-- Verify jobq:grant_tables on pg
begin;

select grantee, queue, privilege from jobq_private.queue_grant where false;
select kind, queue from jobq_private.kind_queue where false;

rollback;
