-- Purpose: the limits that a job passes when it starts: of its lane, of its whole queue and kind where these
-- have limits, where its lane is that of a kind's key that by which the key is held in its queue, and
-- where it has no key that of its kind in its queue.
-- Invariant: a row for each; spacing is null without a rate. A claim of a batch holds and writes to those that are
-- charged: a repeatable snapshot that has not seen its starts fails at them. Raises: nothing.
create or replace function jobq_private.job_limits(job jobq_private.job)
returns table (
    limit_id uuid, scope text, kind text, spacing double precision, burst integer,
    is_ordered boolean, budget jobq_private.budget, concurrency_key text, is_charged boolean
)
language sql
stable
parallel safe
as $$
    select jobq_private.limit_id(q.queue, null), 'queue ' || q.queue, null,
        jobq_private.spacing(q.rate_limit, q.rate_period), coalesce(q.rate_burst, 1), false, q.budget, null,
        true
    from jobq_private.queue as q
    where q.queue = job.queue and num_nonnulls(q.max_running, q.rate_limit, q.budget) > 0
    union all
    select g.limit_id, 'kind ' || g.kind, g.kind,
        jobq_private.spacing(k.rate_limit, k.rate_period), coalesce(k.rate_burst, 1), false, k.budget, null,
        true
    from jobq_private.limit_state as g
    left join jobq_private.kind as k on k.kind = g.kind
    where g.kind = job.kind and g.queue is null
    union all
    select jobq_private.lane_limit_id(job.lane_id, job.concurrency_key, l.kind),
        coalesce('kind ' || l.kind, 'queue ' || job.queue), null, r.spacing, r.burst, r.is_ordered,
        r.budget, job.concurrency_key, num_nonnulls(r.spacing, r.budget, l.kind) > 0 or r.is_ordered
    from (
        select jobq_private.lane_kind(
            job.lane_id, job.queue, job.concurrency_key, job.kind
        ) as kind
    ) as l
    cross join lateral jobq_private.lane_rule(job.queue, job.concurrency_key, l.kind) as r
    where job.concurrency_key is not null
    union all
    select g.limit_id, 'queue ' || job.queue, null, null, 1, false, null, job.concurrency_key,
        false
    from jobq_private.limit_state as g
    where g.limit_id = jobq_private.lane_id(job.queue, job.concurrency_key)
    and g.limit_id <> job.lane_id
    union all
    select g.limit_id, format('kind %s in queue %s', g.kind, g.queue), g.kind, null, 1, false,
        null, null, false
    from jobq_private.limit_state as g
    where g.kind = job.kind and g.queue = job.queue and job.concurrency_key is null
$$;
