-- Verify jobq:limit_tables on pg
begin;

select lane_id, priority, queue, concurrency_key, state, open_at
from jobq_private.lane where false;
select queue, lane_id, concurrency_key, priority from jobq_private.lane_call where false;
select queue, concurrency_key, max_running from jobq_private.key_limit where false;

rollback;
