-- Verify jobq:workflow_tables on pg
begin;

select job_id, name, value, attempt from jobq_private.step where false;
select event, job_id, payload, emitted_at from jobq_private.event where false;
select job_id, event, deadline from jobq_private.waiter where false;
select late_event_id, event, job_id from jobq_private.late_event where false;

rollback;
