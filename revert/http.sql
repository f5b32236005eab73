-- Revert jobq:http from pg
-- Made by sql/snapshot.py from sql/http/: edit that.
begin;
set local role jobq_owner;

drop function if exists jobq_http.submit_schedule;
drop function if exists jobq_http.submit_jobs;
drop function if exists jobq_http.submit_job;
drop function if exists jobq_http.stop_job;
drop function if exists jobq_http.show_workers;
drop function if exists jobq_http.show_totals;
drop function if exists jobq_http.show_schedule;
drop function if exists jobq_http.show_queues;
drop function if exists jobq_http.show_queue;
drop function if exists jobq_http.show_pulse;
drop function if exists jobq_http.show_login;
drop function if exists jobq_http.show_jobs;
drop function if exists jobq_http.show_job;
drop function if exists jobq_http.show_history;
drop function if exists jobq_http.show_execution;
drop function if exists jobq_http.show_dead_jobs;
drop function if exists jobq_http.revoke_api_key;
drop function if exists jobq_http.revise_job;
drop function if exists jobq_http.preview_slots;
drop function if exists jobq_http.page_schedules;
drop function if exists jobq_http.page_schedule_versions;
drop function if exists jobq_http.page_queues;
drop function if exists jobq_http.page_logs;
drop function if exists jobq_http.page_jobs;
drop function if exists jobq_http.page_executions;
drop function if exists jobq_http.page_audit;
drop function if exists jobq_http.page_attempts;
drop function if exists jobq_http.list_api_keys;
drop function if exists jobq_http.create_api_key;
drop function if exists jobq_http.cancel_execution;
drop function if exists jobq_http.authenticate;
drop function if exists jobq_private.payload_name;
drop function if exists jobq_private.look_newest;
drop function if exists jobq_private.look_jobs;
drop function if exists jobq_private.look_failed;
drop function if exists jobq_private.key_runners;
drop function if exists jobq_private.job_trigger;
drop function if exists jobq_private.job_document;
drop function if exists jobq_private.has_failed;
drop function if exists jobq_private.execution_status;
drop function if exists jobq_private.execution_document;
drop function if exists jobq_private.execution_started_at;

commit;
