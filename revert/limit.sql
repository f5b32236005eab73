-- Revert jobq:limit from pg
-- Made by sql/snapshot.py from sql/limit/: edit that.
begin;
set local role jobq_owner;

drop trigger if exists key_limits on jobq_private.key_limit;
drop trigger if exists queue_end_limits on jobq_private.queue;
drop trigger if exists queue_birth_limits on jobq_private.queue;
drop trigger if exists queue_limits on jobq_private.queue;
drop function if exists jobq.put_limit;
drop function if exists jobq.list_limits;
drop function if exists jobq.delete_limit;
drop function if exists jobq_private.take_from_lanes;
drop function if exists jobq_private.follow_limits;
drop function if exists jobq_private.place_in_lane;
drop function if exists jobq_private.pick_lanes;
drop function if exists jobq_private.open_lanes;
drop function if exists jobq_private.next_lane;
drop function if exists jobq_private.limits_changed;
drop function if exists jobq_private.leave_lane;
drop function if exists jobq_private.lane_slot;
drop function if exists jobq_private.lane_limit;
drop function if exists jobq_private.lane_id;
drop function if exists jobq_private.has_room;
drop function if exists jobq_private.has_lanes;
drop function if exists jobq_private.free_places;
drop function if exists jobq_private.close_lanes;
drop function if exists jobq_private.claim_lanes;
drop function if exists jobq_private.check_concurrency_keys;
drop function if exists jobq_private.check_concurrency_key;
drop function if exists jobq_private.call_lanes;
drop function if exists jobq_private.call_lane;
drop function if exists jobq_private.call_full_lanes;

commit;
