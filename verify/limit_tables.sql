-- Verify jobq:limit_tables on pg
begin;

select lane_id, priority, queue, concurrency_key, state, open_at, limit_id
from jobq_private.lane where false;
select queue, lane_id, concurrency_key, priority from jobq_private.lane_call where false;
select limit_id, queue, kind, scope, level, spent, charged_at, charged_since, idle_at, full_until,
    held_until, hold_reason, concurrency_key, head_job_id, dead_job_id
from jobq_private.limit_state where false;
select limit_id from jobq_private.known_limit where false;
select since from jobq_private.in_use where false;
select 1 / (count(*) = 257)::integer from jobq_private.limit_change;
select queue, concurrency_key, max_running, rate_limit, rate_period, rate_burst
from jobq_private.key_limit where false;

rollback;
