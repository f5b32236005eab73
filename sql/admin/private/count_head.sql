-- Purpose: count the waiting jobs of a queue, up to about twice `most`.
-- Invariant: reads at most `most` + 1 jobs without and with keys each, by the indexes
-- of claims. If seen exceeds `most`, each number may be larger. oldest covers the jobs
-- that were read.
create or replace function jobq_private.count_head(
    queue text, most integer, as_of timestamptz
)
returns table (
    seen bigint, queued bigint, scheduled bigint, retrying bigint, oldest timestamptz
)
language sql
stable
as $$
    select
        count(*),
        count(*) filter (where w.state = 'queued' and w.run_at <= as_of),
        count(*) filter (where w.state = 'queued' and w.run_at > as_of),
        count(*) filter (where w.state = 'retrying'),
        min(w.run_at) filter (where w.run_at <= as_of)
    from (
        (
            select j.state, j.run_at from jobq_private.job as j
            where j.queue = count_head.queue and j.state in ('queued', 'retrying')
            and j.due_at is not null
            limit most + 1
        )
        union all
        (
            select j.state, j.run_at from jobq_private.job as j
            where j.queue = count_head.queue and j.state in ('queued', 'retrying')
            and j.key_id is not null
            limit most + 1
        )
    ) as w
$$;
