-- Purpose: how many jobs run under a limit.
-- Invariant: counts rows, so nothing leaks; those of a kind's key also if they were
-- started before the kind had limits for each key. One row. Inlined, so no SET clause.
create or replace function jobq_private.count_running(
    limit_id uuid, queue text, kind text, concurrency_key text
)
returns setof bigint
language sql
stable
parallel safe
rows 1
as $$
    select case
        when kind is null and concurrency_key is null then (
            select count(*) from jobq_private.job as j
            where j.queue = count_running.queue and j.slot is not null
        )
        when kind is null then (
            select count(*) from jobq_private.job as j
            where j.queue = count_running.queue and j.key_id = count_running.limit_id
            and j.slot is not null
        )
        when concurrency_key is null then (
            select count(*) from jobq_private.job as j
            where j.kind = count_running.kind and j.slot is not null
        )
        else (
            select count(*) from jobq_private.job as j
            where j.kind = count_running.kind
            and j.concurrency_key = count_running.concurrency_key and j.slot is not null
        )
    end + (
        select count(*) from jobq_private.running_without_slot() as u
        where case
            when count_running.kind is null then u.queue = count_running.queue
                and (count_running.concurrency_key is null or u.key_id = limit_id)
            else u.kind = count_running.kind
                and coalesce(u.concurrency_key = count_running.concurrency_key,
                    count_running.concurrency_key is null)
        end
    )
$$;
