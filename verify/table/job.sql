-- Verify jobq:table/job on pg
select job_id, state, previous_state, attempt, lease_expires_at, payload
from jobq_private.job where false;
select 1 / (count(*) = 1)::int
from pg_catalog.pg_constraint as c
where c.conrelid = 'jobq_private.job'::regclass and c.conname = 'job_transition_fkey';
select kind, idempotency_key, job_id from jobq_private.idempotency_key where false;
