-- Purpose: the gates that a job passes, and its lane, which let it not start now; no row when it may
-- start. Reason is held, rate_limited, ordered_behind, queue_busy, kind_busy or key_busy.
-- Invariant: a look, no promise, for who does not hold the gates. How many run is counted apart from
-- holds and rates, which have ended at infinity. Who needs at most one pays for no more.
-- Raises: nothing.
create or replace function jobq_private.barriers(
    job jobq_private.job, now timestamptz, at_most integer default null
)
returns table (reason text, scope text, open_at timestamptz)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select b.reason, b.scope, b.open_at
    from (
        select r.reason, r.scope, r.open_at
        from jobq_private.job_gates(job) as j
        left join jobq_private.gate as g on g.gate_id = j.gate_id
        cross join lateral jobq_private.token_at(
            g.passed_until, j.spacing, j.burst, barriers.now
        ) as t (open_at)
        cross join lateral (
            values
            ('held', concat_ws(': ', j.scope, g.hold_reason), g.held_until,
                g.held_until > barriers.now),
            ('rate_limited', j.scope, t.open_at, t.open_at is not null),
            ('ordered_behind', format('%s: job %s', j.scope, g.head_job_id), null,
                j.is_ordered and exists (
                    select from jobq_private.job as h
                    where h.job_id = g.head_job_id and h.job_id <> job.job_id
                    and (h.lane_id = job.lane_id or j.gate_id <> job.lane_id)
                ))
        ) as r (reason, scope, open_at, is_so)
        where r.is_so
        union all
        select 'queue_busy', 'queue ' || job.queue, null
        from jobq_private.gate_room(job.queue, null, 'infinity') as r
        where r.room = 0
        union all
        select 'kind_busy', 'kind ' || job.kind, null
        from jobq_private.gate_room(null, job.kind, 'infinity') as r
        where r.room = 0
        union all
        select
            'key_busy',
            format('kind %s, concurrency_key %s: %s', job.kind, job.concurrency_key,
                r.max_running),
            null
        from jobq_private.key_rule(job.kind) as r
        where r.max_running is not null and job.concurrency_key is not null
        and (
            select k.room
            from jobq_private.key_room(job.kind, job.concurrency_key, 'infinity') as k
        ) = 0
        union all
        select
            'key_busy',
            format('queue %s, concurrency_key %s: %s', job.queue, job.concurrency_key,
                r.max_running),
            null
        from jobq_private.lane_rule(job.queue, job.concurrency_key) as r
        cross join lateral jobq_private.free_places(
            job.queue, job.lane_id, r.max_running, 1
        ) as p (places)
        where p.places = '{}'
    ) as b
    limit barriers.at_most;
end
$$;

revoke all on function jobq_private.barriers from public;

comment on function jobq_private.barriers is
'What lets a job not start now: all of it, or as much as is wanted.';
