-- Verify jobq:limit_tables on pg
begin;

select waiting_id, key_id, queue, kind, concurrency_key, priority, state, open_at, full_kind
from jobq_private.waiting_key where false;
select limit_id, queue, kind, concurrency_key, rate_used, spent, charged_at, charged_since,
    next_cost, next_until, first_job_id
from jobq_private.limit_state where false;
select limit_id, hold_id, queue, kind, concurrency_key, held_until, reason, dead_job_id
from jobq_private.limit_hold where false;
select 1 / (count(*) > 0)::integer from jobq_private.limit_change;
select queue, concurrency_key, max_running, rate_limit, rate_period, rate_burst
from jobq_private.key_limit where false;

rollback;
