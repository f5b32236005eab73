-- Verify jobq:admin_tables on pg
begin;

select minutes, bucket, queue, kind, enqueued, succeeded, failed, dead, cancelled
from jobq_private.history where false;
select minutes, bucket, counts from jobq_private.latency where false;
select rolled_to from jobq_private.history_mark where false;
select queue, enqueued, succeeded, failed, dead, cancelled from jobq_private.total where false;
select queue, queued, scheduled, retrying, counted_at, took
from jobq_private.waiting_count where false;
select object, sum from jobq_private.deployed_object where false;
select null::jobq_private.finding;

rollback;
