-- Verify jobq:work_tables on pg
begin;

select worker, queues, seen_at from jobq_private.worker where false;
select 1 / (count(*) >= 1)::int from jobq_private.region_status;
select null::jobq.claimed_job, null::jobq_private.claim_mark, null::jobq_private.failure;
select 1 / (count(*) = 8)::int
from pg_catalog.pg_sequences where schemaname = 'jobq_private' and sequencename ~ '^claim_front_';

rollback;
