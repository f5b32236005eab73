-- Revert jobq:work_tables from pg
begin;

drop type jobq_private.failure, jobq_private.claim_mark, jobq.claimed_job;
drop table jobq_private.failed_task, jobq_private.region_status, jobq_private.worker;

commit;
