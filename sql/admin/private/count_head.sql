-- Purpose: count the waiting jobs of a queue, up to about twice `most`.
-- Invariant: reads at most `most` + 1 jobs without and with keys each, by the indexes
-- of claims. If seen exceeds `most`, each number may be larger. oldest and due, the first run_at
-- and the first moment at which a job could be claimed, cover the jobs that were read.
create or replace function jobq_private.count_head(queue text, most integer, as_of timestamptz)
returns table (
    seen bigint, queued bigint, scheduled bigint, retrying bigint, oldest timestamptz,
    due timestamptz
)
language sql stable as $$
    select
        count(*),
        count(*) filter (where w.state = 'queued' and w.run_at <= as_of),
        count(*) filter (where w.state = 'queued' and w.run_at > as_of),
        count(*) filter (where w.state = 'retrying'),
        min(w.run_at) filter (where w.run_at <= as_of),
        min(w.due_at) filter (where w.due_at <= as_of)
    from jobq_private.head_jobs(count_head.queue, most + 1) as w
$$;
