-- Revert jobq:work from pg
-- Made by sql/snapshot.py from sql/work/: edit that.
begin;
set local role jobq_owner;

drop function if exists jobq.work;
drop function if exists jobq.set_progress;
drop function if exists jobq.run_calls;
drop function if exists jobq.retire_worker;
drop function if exists jobq.release_many;
drop function if exists jobq.release;
drop function if exists jobq.recover;
drop function if exists jobq.rate_limited;
drop function if exists jobq.log;
drop function if exists jobq.list_workers;
drop view if exists jobq.worker;
drop function if exists jobq.hold_lane;
drop function if exists jobq.heartbeat;
drop function if exists jobq.fail_many;
drop function if exists jobq.fail;
drop function if exists jobq.exchange;
drop function if exists jobq.end_wait;
drop function if exists jobq.due_in;
drop function if exists jobq.confirm_cancel;
drop function if exists jobq.complete_many;
drop function if exists jobq.complete;
drop function if exists jobq.claim_job;
drop function if exists jobq.claim_calls;
drop function if exists jobq.claim;
drop function if exists jobq.begin_wait;
drop function if exists jobq.backoff;
drop function if exists jobq_private.wake;
drop function if exists jobq_private.settle_successes;
drop function if exists jobq_private.settle_rest;
drop function if exists jobq_private.settle_failures;
drop function if exists jobq_private.refuse_attempt;
drop function if exists jobq_private.notify;
drop function if exists jobq_private.next_mark;
drop function if exists jobq_private.lost_job;
drop function if exists jobq_private.kept_details;
drop function if exists jobq_private.keep_mark;
drop function if exists jobq_private.held_jobs;
drop function if exists jobq_private.due_priority;
drop function if exists jobq_private.check_results;
drop function if exists jobq_private.check_claim;
drop function if exists jobq.next_due;
drop function if exists jobq_private.is_unknown;

commit;
