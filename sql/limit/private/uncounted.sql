-- Purpose: the jobs that run without a place where limits count what runs.
-- Invariant: a change of limits waits for nobody, so what was started before, or by a transaction that
-- was open then, has no place yet: it is counted by itself, until find_stranded() gives it one. While
-- known_limit has no row with null there is none, and this costs one look. Raises: nothing.
create or replace function jobq_private.uncounted()
returns setof jobq_private.job
language sql
stable
parallel safe
as $$
    select j.*
    from jobq_private.job as j
    cross join lateral jobq_private.lane_rule(
        j.queue, j.concurrency_key,
        jobq_private.lane_kind(j.lane_id, j.queue, j.concurrency_key, j.kind)
    ) as r
    left join jobq_private.queue as q on q.queue = j.queue
    left join jobq_private.kind as k on k.kind = j.kind
    where exists (select from jobq_private.known_limit as g where g.limit_id is null)
    and j.state = 'running'
    and j.place is null
    and (
        num_nonnulls(r.max_running, q.max_running, k.max_running) > 0
        or j.concurrency_key is not null and num_nonnulls(k.key_max_running, k.ordered) > 0
    )
$$;
