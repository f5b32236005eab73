-- Revert jobq:job from pg
-- Made by sql/snapshot.py from sql/job/: edit that.
begin;
set local role jobq_owner;

drop trigger if exists job_update on jobq.job;
drop trigger if exists job_transition on jobq_private.job;
drop trigger if exists job_insert on jobq.job;
drop trigger if exists job_identity on jobq_private.job;
drop trigger if exists job_birth on jobq_private.job;
drop trigger if exists job_attempt on jobq_private.job;
drop trigger if exists job_archive on jobq_private.job;
drop trigger if exists archive_redrive on jobq_private.job_archive;
drop trigger if exists archive_immutable on jobq_private.job_archive;
drop trigger if exists archive_birth on jobq_private.job_archive;
drop function if exists jobq.wait;
drop function if exists jobq.redrive_many;
drop function if exists jobq.redrive;
drop function if exists jobq.find_job;
drop function if exists jobq.get_job;
drop function if exists jobq.cancel;
drop view if exists jobq.attempt;
drop function if exists jobq_private.tell_ended;
drop function if exists jobq_private.store_jobs;
drop function if exists jobq_private.make_partition;
drop function if exists jobq_private.archive_finished;
drop function if exists jobq_private.redrive_archived;
drop function if exists jobq_private.id_floor;
drop view if exists jobq.job;
drop function if exists jobq_private.new_id;

commit;
