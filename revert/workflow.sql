-- Revert jobq:workflow from pg
-- Made by sql/snapshot.py from sql/workflow/: edit that.
begin;
set local role jobq_owner;

drop function if exists jobq.wait_for;
drop function if exists jobq.signal;
drop function if exists jobq.save_steps;
drop function if exists jobq.save_step;
drop function if exists jobq.list_steps;
drop function if exists jobq.emit;
drop function if exists jobq_private.store_event;
drop function if exists jobq_private.settle_wait;
drop function if exists jobq_private.release_waiters;
drop function if exists jobq_private.prune_workflows;
drop function if exists jobq_private.check_steps;
drop function if exists jobq_private.check_event;

commit;
