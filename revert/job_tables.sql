-- Revert jobq:job_tables from pg
begin;

drop type jobq_private.ending, jobq_private.new_job;
drop table jobq_private.job_log, jobq_private.attempt, jobq_private.job_archive;
drop sequence jobq_private.job_log_sequence;
drop table jobq_private.idempotency_key, jobq_private.throttle, jobq_private.moved_job, jobq_private.job;
drop domain jobq_private.last_error, jobq_private.dedup, jobq_private.instant, jobq_private.cost;
drop table jobq_private.transition_slot, jobq_private.transition;

commit;
