-- Deploy jobq:job_running_index to pg
begin;
set local role jobq_owner;

-- First what needs the stronger lock. A core has this change already when features are added to it.
-- squawk-ignore require-concurrent-index-deletion
drop index if exists jobq_private.job_kind_slot_idx;

-- "kind is not null" adds nothing to the rows, but keeps this index from counting the slots of a
-- key. After an ANALYZE while no job ran, the planner preferred it for that: each claim then read
-- the slots of all running jobs once for each of its keys.
-- squawk-ignore require-concurrent-index-creation
create index if not exists job_kind_running_idx on jobq_private.job (kind, concurrency_key)
where slot is not null and kind is not null;

commit;
