-- Purpose: when the next key of a queue may have a runnable job; -infinity if one may
-- have one now, also if a claim skipped it because its limits were locked.
-- Invariant: two index probes, one more for each limit that keys wait for, and with
-- excluded kinds one for each key whose first job has such a kind.
create or replace function jobq_private.next_key(queue text, except_kinds text[])
returns timestamptz language sql stable as $$
    select least(
        (
            select case when w.open_at > clock_timestamp() then w.open_at else '-infinity' end
            from jobq_private.waiting_key as w
            where w.queue = next_key.queue and w.state <> 'full'
            and (
                next_key.except_kinds is null
                or coalesce((
                    select j.kind
                    from jobq_private.job as j
                    where j.queue = w.queue
                    and j.key_id = w.key_id
                    and j.priority = w.priority
                    and j.state in ('queued', 'retrying')
                    order by j.run_at, j.job_id
                    limit 1
                ) <> all(next_key.except_kinds), false)
            )
            order by w.open_at
            limit 1
        ),
        (
            select min(case when coalesce(a.max_starts, 1) > 0 then '-infinity' else a.opens_at end)
            from jobq_private.awaited_limits(next_key.queue, clock_timestamp()) as a
        )
    )
$$;
