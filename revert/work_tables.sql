-- Revert jobq:work_tables from pg
begin;

drop type
    jobq_private.failure, jobq_private.claim_turn, jobq_private.claim_hint, jobq_private.claim_plan,
    jobq.claimed_job;
drop table jobq_private.maintenance_task, jobq_private.failed_task;
drop table jobq_private.region_status, jobq_private.worker;

commit;
