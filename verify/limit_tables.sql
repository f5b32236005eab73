-- Verify jobq:limit_tables on pg
begin;

select lane_id, priority, queue, concurrency_key, state, open_at, gate_id, key_gate_id
from jobq_private.lane where false;
select queue, lane_id, concurrency_key, priority from jobq_private.lane_call where false;
select gate_id, queue, kind, passed_until, held_until, hold_reason, concurrency_key,
    head_job_id
from jobq_private.gate where false;
select gate_id from jobq_private.kind_gate where false;
select since from jobq_private.in_use where false;
select 1 / (count(*) = 257)::integer from jobq_private.limit_change;
select queue, concurrency_key, max_running, rate_limit, rate_period, rate_burst
from jobq_private.key_limit where false;

rollback;
