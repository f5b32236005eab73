-- Purpose: the gates that a job passes when it starts: of its lane, of its whole queue and kind and of
-- its key of the kind where these have limits, and where it has no key that of its kind in its queue.
-- Invariant: a row for each; spacing is null without a rate. Raises: nothing.
create or replace function jobq_private.job_gates(job jobq_private.job)
returns table (
    gate_id uuid, scope text, kind text, spacing bigint, burst integer, is_ordered boolean
)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.gate_id(q.queue, null), 'queue ' || q.queue, null,
        jobq_private.spacing(q.rate_limit, q.rate_period), coalesce(q.rate_burst, 1), false
    from jobq_private.queue as q
    where q.queue = job.queue and num_nonnulls(q.max_running, q.rate_limit) > 0
    union all
    select g.gate_id, 'kind ' || g.kind, g.kind,
        jobq_private.spacing(k.rate_limit, k.rate_period), coalesce(k.rate_burst, 1), false
    from jobq_private.gate as g
    left join jobq_private.kind as k on k.kind = g.kind
    where g.kind = job.kind and g.queue is null
    union all
    select job.lane_id, format('queue %s, concurrency_key %s', job.queue, job.concurrency_key),
        null, r.spacing, r.burst, r.is_ordered
    from jobq_private.lane_rule(job.queue, job.concurrency_key) as r
    where job.concurrency_key is not null
    union all
    select jobq_private.key_gate_id(job.kind, job.concurrency_key),
        format('kind %s, concurrency_key %s', job.kind, job.concurrency_key),
        null, r.spacing, r.burst, r.is_ordered
    from jobq_private.key_rule(job.kind) as r
    where job.concurrency_key is not null
    union all
    select g.gate_id, format('kind %s in queue %s', g.kind, g.queue), g.kind, null, 1, false
    from jobq_private.gate as g
    where g.kind = job.kind and g.queue = job.queue and job.concurrency_key is null
$$;

revoke all on function jobq_private.job_gates from public;

comment on function jobq_private.job_gates is
'The gates that a job passes when it starts.';
