-- Purpose: make the rows of checked new jobs: what each leaves open is filled in from the
-- settings of its kind and queue.
-- Invariant: it is inlined into the statement that stores the rows, so it has no settings
-- of its own; the settings are read once for each kind and queue. ids has the id of each
-- job, in the order of jobs. The rows come in that order, too, so that ids and rows are stored
-- as claims read them: generate_subscripts() tells the planner that jobs are more than policies,
-- which are hashed then. Raises: nothing.
create or replace function jobq_private.job_rows(jobs jobq_private.new_job[], ids uuid[])
returns table (
    job_id uuid, kind text, payload jsonb, queue text, run_at timestamptz,
    priority integer, max_attempts integer, timeout interval, lease interval,
    idempotency_key text, dedup_key text, dedup jobq_private.dedup, metadata jsonb,
    schedule_id uuid, slot_at timestamptz, delivery_version integer, concurrency_key text,
    lane_id uuid, expires_at timestamptz, keep interval[], state text, batch_id uuid,
    is_awaited boolean
)
language sql
stable
parallel unsafe
security invoker
as $$
    with policy as materialized (
        select d.kind as of_kind, d.queue as of_queue, s.*
        from (select distinct j.kind, coalesce(j.queue, '') from pg_catalog.unnest(jobs) as j)
            as d (kind, queue)
        cross join lateral
            jobq_private.settings_for(d.kind, nullif(d.queue, '')) as s
    )
    select
        ids[j.ordinality], j.kind, coalesce(j.payload, '{}'), p.queue, coalesce(j.run_at, pg_catalog.now()),
        coalesce(j.priority, p.priority), coalesce(j.max_attempts, p.max_attempts),
        coalesce(j.timeout, p.timeout), p.lease, j.idempotency_key, j.dedup_key,
        case when j.dedup_key is not null then j.dedup end, coalesce(j.metadata, '{}'),
        j.schedule_id, j.slot_at, p.delivery_version, k.concurrency_key,
        jobq_private.lane_of(p.queue, k.concurrency_key, j.kind, p.is_limited), j.expires_at,
        p.keep,
        case
            when j.callback_of is null and coalesce(j.after, '{}') = '{}' then 'queued'
            else 'blocked'
        end,
        j.batch_id, coalesce(j.is_awaited, false)
    from rows from (
        pg_catalog.unnest(jobs), pg_catalog.generate_subscripts(jobs, 1)
    ) with ordinality as j
    join policy as p on p.of_kind = j.kind and p.of_queue = coalesce(j.queue, '')
    cross join lateral (
        select coalesce(j.concurrency_key, j.payload #>> p.concurrency_key)
    ) as k (concurrency_key)
$$;

revoke all on function jobq_private.job_rows from public;

comment on function jobq_private.job_rows is
'Makes the rows of checked new jobs, with what the settings of their kinds and queues say.';
