-- Revert jobq:job_running_index from pg
begin;

drop index jobq_private.job_kind_running_idx;
create index job_kind_slot_idx on jobq_private.job (kind, concurrency_key)
where slot is not null;

commit;
