-- Revert jobq:cron from pg
-- Made by sql/snapshot.py from sql/cron/: edit that.
begin;
set local role jobq_owner;

drop function if exists jobq.preview_cron;
drop function if exists jobq.next_tick;
drop function if exists jobq_private.preview_check;
drop function if exists jobq_private.moment_in;
drop function if exists jobq_private.cron_years;
drop function if exists jobq_private.cron_refuse;
drop function if exists jobq_private.cron_range;
drop function if exists jobq_private.cron_parse;
drop function if exists jobq_private.cron_split;
drop function if exists jobq_private.cron_number;
drop function if exists jobq_private.cron_last;
drop function if exists jobq_private.cron_next;
drop function if exists jobq_private.cron_next_local;
drop function if exists jobq_private.cron_time;
drop function if exists jobq_private.cron_first;
drop function if exists jobq_private.cron_field;
drop function if exists jobq_private.cron_days;
drop function if exists jobq_private.cron_rotate;
drop function if exists jobq_private.cron_day_of_week;
drop function if exists jobq_private.cron_day_of_month;
drop function if exists jobq_private.cron_check;
drop function if exists jobq_private.cron_change;

commit;
