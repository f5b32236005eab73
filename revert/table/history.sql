-- Revert jobq:table/history from pg
begin;
drop table jobq_private.job_log, jobq_private.attempt, jobq_private.job_archive;
drop sequence jobq_private.job_log_sequence;
commit;
