-- Revert jobq:setting from pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

drop function if exists jobq.version;
drop function if exists jobq.settings;
drop function if exists jobq.put_queue;
drop function if exists jobq.put_kind;
drop function if exists jobq_internal.list_undeclared_kinds;
drop function if exists jobq_internal.list_payload_schemas;
drop function if exists jobq.delete_queue;
drop function if exists jobq.delete_kind;
drop function if exists jobq.configure;
drop function if exists jobq_private.settings_for;
drop function if exists jobq_private.retry_policy_for;
drop function if exists jobq_private.refuse_setting;
drop function if exists jobq_private.max_attempts_for;
drop function if exists jobq_private.forget_kind;

commit;
