-- Revert jobq:type/job from pg
begin;
drop type jobq_private.retry_policy, jobq_private.settings, jobq_private.failure,
    jobq_private.claim_mark, jobq_private.new_job, jobq.claimed_job;
commit;
