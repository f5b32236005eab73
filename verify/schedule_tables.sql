-- Verify jobq:schedule_tables on pg
begin;

select schedule_id, name, version, parsed, next_run_at, last_tick_at, retry_at, failure, login
from jobq_private.schedule
where false;

rollback;
