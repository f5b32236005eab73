-- Purpose: the slots of the running jobs under a limit; none of a total without max_running.
-- Invariant: reads rows with the snapshot of the statement, so no counter can leak. For a key of
-- a kind, includes jobs that started before the kind had limits for keys. Inlined, so no SET
-- clause.
create or replace function jobq_private.used_slots(
    limit_id uuid, queue text, kind text, concurrency_key text, max_running integer default null
)
returns table (slots smallint[]) language sql stable rows 1 as $$
    select case
        when num_nonnulls(queue, kind, concurrency_key, max_running) = 1 then '{}'
        when used_slots.kind is not null and used_slots.concurrency_key is not null then array(
            select j.slot from jobq_private.job as j
            where j.kind = used_slots.kind and j.concurrency_key = used_slots.concurrency_key
            and j.slot is not null
        )
        when used_slots.kind is not null then array(
            select j.slot from jobq_private.job as j
            where j.kind = used_slots.kind and j.slot is not null
        )
        when used_slots.concurrency_key is not null then array(
            select j.slot from jobq_private.job as j
            where j.queue = used_slots.queue and j.key_id = used_slots.limit_id
            and j.slot is not null
        )
        else array(
            select j.slot from jobq_private.job as j
            where j.queue = used_slots.queue and j.slot is not null
        )
    end
    offset 0
$$;
