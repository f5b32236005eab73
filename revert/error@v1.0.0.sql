-- Revert jobq:error from pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

drop view if exists jobq.error;
drop function if exists jobq_private.redacted_text;
drop function if exists jobq_private.redacted_json;
drop function if exists jobq_private.redacted;
drop function if exists jobq_private.raise_error;
drop function if exists jobq_private.check_problem;
drop function if exists jobq_private.check_given;
drop function if exists jobq_private.check_count;
drop function if exists jobq_private.check_argument;

commit;
