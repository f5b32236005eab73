-- Revert jobq:setting from pg
-- Made by sql/snapshot.py from sql/setting/: edit that.
begin;
set local role jobq_owner;

drop trigger if exists setting_change on jobq_private.setting;
drop trigger if exists queue_rules on jobq_private.queue;
drop trigger if exists kind_rules on jobq_private.kind;
drop function if exists jobq.settings;
drop function if exists jobq.resume_queue;
drop function if exists jobq.put_queue;
drop function if exists jobq.put_kind;
drop function if exists jobq.pause_queue;
drop function if exists jobq.list_undeclared_kinds;
drop function if exists jobq.list_queues;
drop function if exists jobq.list_payload_schemas;
drop function if exists jobq.list_kinds;
drop function if exists jobq.delete_queue;
drop function if exists jobq.delete_kind;
drop function if exists jobq.configure;
drop function if exists jobq_private.setting_changed;
drop function if exists jobq_private.set_payload_schema;
drop function if exists jobq_private.schema_problem;
drop function if exists jobq_private.retry_policy_for;
drop function if exists jobq_private.refuse_setting;
drop function if exists jobq_private.pattern_problem;
drop function if exists jobq_private.object_violation;
drop function if exists jobq_private.note_rules;
drop function if exists jobq_private.matches_pattern;
drop function if exists jobq_private.limits_for;
drop function if exists jobq_private.forget_kind;
drop function if exists jobq_private.check_sql_function;
drop function if exists jobq_private.settings_for;
drop function if exists jobq_private.is_held;
drop function if exists jobq_private.schema_violation;
drop function if exists jobq_private.json_schema_violation;
drop function if exists jobq_private.write_defaults;
drop function if exists jobq_private.is_paused;
drop function if exists jobq_private.sql_function_problem;
drop function if exists jobq_private.sql_function_bar;
drop function if exists jobq_private.sql_function;
drop function if exists jobq_private.is_trusted;
drop function if exists jobq_private.lock_class;
drop function if exists jobq_private.milliseconds;
drop function if exists jobq_private.has_queue_rules;
drop function if exists jobq_private.has_kind_rules;
drop function if exists jobq_private.defaults;

commit;
