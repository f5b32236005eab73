-- Verify jobq:job_tables on pg
begin;

select 1 / (count(*) = 18)::int from jobq_private.transition;
select 1 / (count(*) = 1024 * (select count(*) from jobq_private.transition))::int
from jobq_private.transition_slot;
select job_id, state, previous_state, attempt, lease_expires_at, payload
from jobq_private.job where false;
select 1 / (count(*) = 1)::int
from pg_catalog.pg_constraint as c
where c.conrelid = 'jobq_private.job'::regclass and c.conname = 'job_transition_fkey';
select kind, idempotency_key, job_id from jobq_private.idempotency_key where false;
select job_id, moves, shard_id, job from jobq_private.moved_job where false;
select kind, dedup_key, job_id, until from jobq_private.throttle where false;
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
select null::jobq_private.new_job;

rollback;
