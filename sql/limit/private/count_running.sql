-- Purpose: the number of running jobs under a limit, and their slots, except those of a
-- queue.
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
    select count(*), array_agg(r.slot) filter (where r.is_numbered)
    from (
        select j.slot, false as is_numbered
        from jobq_private.job as j
        where count_running.kind is null and count_running.concurrency_key is null
        and j.queue = count_running.queue and j.slot is not null
        union all
        select j.slot, true
        from jobq_private.job as j
        where count_running.kind is null and count_running.concurrency_key is not null
        and j.queue = count_running.queue and j.key_id = count_running.limit_id
        and j.slot is not null
        union all
        select j.slot, true
        from jobq_private.job as j
        where count_running.kind is not null and count_running.concurrency_key is null
        and j.kind = count_running.kind and j.slot is not null
        union all
        select j.slot, true
        from jobq_private.job as j
        where count_running.kind is not null and count_running.concurrency_key is not null
        and j.kind = count_running.kind
        and j.concurrency_key = count_running.concurrency_key and j.slot is not null
        union all
        select null, false
        from jobq_private.running_without_slot() as u
        where case
            when count_running.kind is null then u.queue = count_running.queue
                and (count_running.concurrency_key is null or u.key_id = count_running.limit_id)
            else u.kind = count_running.kind
                and coalesce(u.concurrency_key = count_running.concurrency_key,
                    count_running.concurrency_key is null)
        end
    ) as r
    offset 0
$$;
