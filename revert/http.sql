-- Revert jobq:http from pg
-- Made by sql/snapshot.py from sql/http/: edit that.
begin;
set local role jobq_owner;

drop function if exists jobq_http.submit_schedule;
drop function if exists jobq_http.revise_job;
drop function if exists jobq_http.page_schedules;
drop function if exists jobq_http.page_schedule_versions;
drop function if exists jobq_http.page_queues;
drop function if exists jobq_http.page_logs;
drop function if exists jobq_http.page_jobs;
drop function if exists jobq_http.page_executions;
drop function if exists jobq_http.page_attempts;
drop function if exists jobq_http.cancel_execution;
drop function if exists jobq_private.execution_started_at;

commit;
