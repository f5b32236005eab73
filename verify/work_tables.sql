-- Verify jobq:work_tables on pg
begin;

select worker, queues, seen_at from jobq_private.worker where false;
select 1 / (count(*) >= 1)::int from jobq_private.region_status;
select null::jobq.claimed_job, null::jobq_private.claim_hint, null::jobq_private.claim_turn,
    null::jobq_private.failure;

rollback;
