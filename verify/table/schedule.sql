-- Verify jobq:table/schedule on pg
select schedule_id, name, version, parsed, next_run_at, last_tick_at
from jobq_private.schedule
where false;
