-- Revert jobq:wiring from pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

drop function if exists jobq_private.refuse_missing;
drop function if exists jobq_private.on_wait;
drop function if exists jobq_private.on_store;
drop function if exists jobq_private.on_start;
drop function if exists jobq_private.on_redrive;
drop function if exists jobq_private.on_queue;
drop function if exists jobq_private.on_move;
drop function if exists jobq_private.on_forget;
drop function if exists jobq_private.on_end;
drop function if exists jobq_private.on_claim;
drop function if exists jobq_private.with_work;
drop function if exists jobq_private.opening;
drop function if exists jobq_private.find_passing;
drop function if exists jobq_private.due_priority;

commit;
