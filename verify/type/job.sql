-- Verify jobq:type/job on pg
select null::jobq.claimed_job, null::jobq_private.new_job,
    null::jobq_private.claim_mark, null::jobq_private.failure,
    null::jobq_private.settings, null::jobq_private.retry_policy;
