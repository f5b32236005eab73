-- Deploy jobq:job_slot_index to pg
begin;
set local role jobq_owner;

-- "kind is not null" adds nothing to the rows, but keeps this index from counting the slots of a
-- key. After an ANALYZE while no job ran, the planner preferred it for that: each claim then read
-- the slots of all running jobs once for each of its keys.
-- squawk-ignore require-concurrent-index-creation
create index job_slot_kind_idx on jobq_private.job (kind, concurrency_key)
where slot is not null and kind is not null;

-- squawk-ignore require-concurrent-index-deletion
drop index jobq_private.job_kind_slot_idx;

commit;
