-- Revert jobq:work from pg
-- Made by sql/snapshot.py from sql/work/: edit that.
begin;
set local role jobq_owner;

drop view if exists jobq.worker;
drop function if exists jobq.set_progress;
drop function if exists jobq.retire_worker;
drop function if exists jobq.release;
drop function if exists jobq.log;
drop function if exists jobq.heartbeat;
drop function if exists jobq.fail;
drop function if exists jobq.confirm_cancel;
drop function if exists jobq_private.settle_successes;
drop function if exists jobq_private.check_claim;

commit;
