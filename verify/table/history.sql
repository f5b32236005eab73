-- Verify jobq:table/history on pg
select job_id, finished_at, result from jobq_private.job_archive where false;
select job_id, attempt, state, error_code from jobq_private.attempt where false;
select job_id, attempt, level, message from jobq_private.job_log where false;
select 1 / (count(*) = 3)::int
from pg_catalog.pg_inherits as i
where i.inhrelid in (
    'jobq_private.job_archive_default'::regclass,
    'jobq_private.attempt_default'::regclass,
    'jobq_private.job_log_default'::regclass
);
