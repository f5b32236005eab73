-- Revert jobq:setting from pg
-- Made by sql/snapshot.py from sql/setting/: edit that.
begin;
set local role jobq_owner;

drop function if exists jobq.settings;
drop function if exists jobq.resume_queue;
drop function if exists jobq.put_queue;
drop function if exists jobq.put_kind;
drop function if exists jobq.pause_queue;
drop function if exists jobq_private.milliseconds;

commit;
