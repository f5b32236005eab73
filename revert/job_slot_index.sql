-- Revert jobq:job_slot_index from pg
begin;

create index job_kind_slot_idx on jobq_private.job (kind, concurrency_key)
where slot is not null;
drop index jobq_private.job_slot_kind_idx;

commit;
