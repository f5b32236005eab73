-- Purpose: the limits that keep a job from starting now; no row when it may
-- start. Reason is held, rate_limited, budget, ordered_behind, queue_busy, kind_busy or key_busy.
-- Invariant: a look, no promise, for who does not hold the limits. Who needs at most one pays for no more.
-- Raises: nothing.
create or replace function jobq_private.blocking_limits(
    job jobq_private.job, now timestamptz, at_most integer default null
)
returns table (reason text, scope text, open_at timestamptz)
language plpgsql
stable
parallel safe
as $$
begin
    return query
    select b.reason, b.scope, b.open_at
    from (
        select r.reason, r.scope, r.open_at
        from jobq_private.job_limits(job) as j
        left join jobq_private.limit_state as g on g.limit_id = j.limit_id
        cross join lateral (
            select concat_ws(', ', j.scope, 'concurrency_key ' || j.concurrency_key) as scope
        ) as n
        cross join lateral jobq_private.rate_opens_at(
            g.level, g.charged_at, j.spacing, j.burst, blocking_limits.now
        ) as t (open_at)
        left join lateral jobq_private.first_of_order(
            job, g.head_job_id, blocking_limits.now
        ) as h (head_job_id) on j.is_ordered
        cross join lateral (
            select jobq_private.budget_spent(j.budget, g.spent, g.charged_at, blocking_limits.now) as spent
        ) as s
        cross join lateral (
            values
            ('held', concat_ws(': ', n.scope, g.hold_reason), g.held_until,
                g.held_until > blocking_limits.now),
            ('rate_limited', n.scope, t.open_at, t.open_at is not null),
            (
                'budget', format(
                    '%s: %s of %s spent, this job costs %s', n.scope, s.spent, (j.budget).amount,
                    coalesce(job.cost, 1)
                ),
                jobq_private.budget_end(j.budget, blocking_limits.now),
                s.spent + coalesce(job.cost, 1) > (j.budget).amount
            ),
            ('ordered_behind', format('%s: job %s', n.scope, h.head_job_id), null,
                h.head_job_id is not null)
        ) as r (reason, scope, open_at, is_so)
        where r.is_so
        union all
        select 'queue_busy', 'queue ' || job.queue, null
        from jobq_private.limit_room(job.queue, null, blocking_limits.now) as r
        where r.slots = 0
        union all
        select 'kind_busy', 'kind ' || job.kind, null
        from jobq_private.limit_room(null, job.kind, blocking_limits.now) as r
        where r.slots = 0
        union all
        select 'key_busy', jobq_private.lane_name(job) || ': ' || r.max_running, null
        from (
            select jobq_private.lane_kind(
                job.lane_id, job.queue, job.concurrency_key, job.kind
            ) as kind
        ) as l
        cross join lateral jobq_private.lane_rule(job.queue, job.concurrency_key, l.kind) as r
        cross join lateral jobq_private.free_places(
            job.queue, job.lane_id,
            jobq_private.lane_max_running(r, job.queue, job.concurrency_key, l.kind), 1
        ) as p (places)
        where p.places = '{}'
    ) as b
    limit blocking_limits.at_most;
end
$$;
