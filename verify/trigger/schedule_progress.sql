-- Verify jobq:trigger/schedule_progress on pg
begin;

select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = 'jobq_private.schedule'::regclass
and t.tgname = 'schedule_progress';

rollback;
