-- Revert jobq:work_tables from pg
begin;

drop sequence
jobq_private.claim_front_0, jobq_private.claim_front_1, jobq_private.claim_front_2,
jobq_private.claim_front_3, jobq_private.claim_front_4, jobq_private.claim_front_5,
jobq_private.claim_front_6, jobq_private.claim_front_7;
drop type jobq_private.failure, jobq_private.claim_mark, jobq.claimed_job;
drop table jobq_private.failed_task, jobq_private.region_status, jobq_private.worker;

commit;
