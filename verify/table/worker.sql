-- Verify jobq:table/worker on pg
select worker, queues, seen_at from jobq_private.worker where false;
select 1 / (count(*) >= 1)::int from jobq_private.region_status;
