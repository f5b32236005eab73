-- Purpose: the number of running jobs with a slot under a limit, and their slots.
-- Invariant: counts rows with the snapshot of the statement, so no counter can leak.
-- For a key of a kind, includes jobs that started before the kind had limits for each
-- key. Inlined, so no SET clause; offset 0, so that it is evaluated once.
create or replace function jobq_private.count_running(
    limit_id uuid, queue text, kind text, concurrency_key text
)
returns table (jobs bigint, slots smallint[])
language sql
stable
rows 1
as $$
    select count(*), array_agg(r.slot)
    from (
        select j.slot
        from jobq_private.job as j
        where count_running.kind is null and count_running.concurrency_key is null
        and j.queue = count_running.queue and j.slot is not null
        union all
        select j.slot
        from jobq_private.job as j
        where count_running.kind is null and count_running.concurrency_key is not null
        and j.queue = count_running.queue and j.key_id = count_running.limit_id
        and j.slot is not null
        union all
        select j.slot
        from jobq_private.job as j
        where count_running.concurrency_key is null
        and j.kind = count_running.kind and j.slot is not null
        union all
        select j.slot
        from jobq_private.job as j
        where j.kind = count_running.kind
        and j.concurrency_key = count_running.concurrency_key and j.slot is not null
    ) as r
    offset 0
$$;
