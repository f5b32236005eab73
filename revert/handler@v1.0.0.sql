-- Revert jobq:handler from pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

drop trigger if exists kind_run on jobq_private.kind;
drop function if exists jobq_private.kind_run;
drop function if exists jobq.work;
drop function if exists jobq_internal.run_calls;
drop function if exists jobq_internal.get_call;
drop function if exists jobq_internal.claim_calls;
drop function if exists jobq_private.sql_function_problem;
drop function if exists jobq_private.sql_function_bar;
drop function if exists jobq_private.sql_function;
drop function if exists jobq_private.is_trusted;

commit;
