-- Purpose: insert the jobs of slots by one statement, but for those whose dedup key a
-- live job holds.
-- Invariant: unique indexes alone decide between concurrent callers; in the order of
-- keys, so that batches cannot deadlock on them. Returns what was stored. Raises:
-- nothing.
create or replace function jobq_private.schedule_store(jobs jobq_private.new_job[])
returns table (ordinal integer, job_id uuid)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _ordinals integer[];
    _ids uuid[];
    _queues text[];
    _has_keys boolean;
begin
    with given as materialized (
        select
            jobq_private.new_id() as new_job_id, coalesce(j.queue, '') as of_queue, j.*
        from unnest(schedule_store.jobs) as j
    ),
    policy as materialized (
        select d.kind as of_kind, d.of_queue, s.*
        from (select distinct g.kind, g.of_queue from given as g) as d
        cross join lateral
            jobq_private.settings_for(d.kind, nullif(d.of_queue, '')) as s
    ),
    stored as (
        insert into jobq_private.job as l (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout,
            lease, idempotency_key, dedup_key, dedup, metadata, schedule_id, slot_at,
            delivery_version,
            concurrency_key, lane_id, expires_at, keep
        )
        select
            g.new_job_id, g.kind, g.payload, p.queue, g.run_at,
            coalesce(g.priority, p.priority), coalesce(g.max_attempts, p.max_attempts),
            coalesce(g.timeout, p.timeout), p.lease, g.idempotency_key, g.dedup_key,
            case when g.dedup_key is not null then g.dedup end, g.metadata,
            g.schedule_id, g.slot_at, p.delivery_version,
            k.concurrency_key,
            jobq_private.lane_of(p.queue, k.concurrency_key, g.kind, p.is_limited),
            g.expires_at, p.keep
        from given as g
        join policy as p on p.of_kind = g.kind and p.of_queue = g.of_queue
        cross join lateral (
            select coalesce(g.concurrency_key, g.payload #>> p.concurrency_key)
        ) as k (concurrency_key)
        order by g.kind, g.dedup_key, g.ordinal
        on conflict (kind, dedup_key) where dedup is not null do nothing
        returning l.job_id, l.queue, l.run_at, l.lane_id
    )
    select
        array_agg(g.ordinal), array_agg(s.job_id),
        array_agg(distinct s.queue) filter (where s.run_at < now() + interval '60 s'),
        bool_or(s.lane_id is not null)
    into _ordinals, _ids, _queues, _has_keys
    from stored as s
    join given as g on g.new_job_id = s.job_id;

    if _has_keys then
        perform jobq_private.call_lanes(_ids);
    end if;
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
    return query
    select r.ordinal, r.job_id from unnest(_ordinals, _ids) as r (ordinal, job_id);
end
$$;

revoke all on function jobq_private.schedule_store from public;

comment on function jobq_private.schedule_store is
'Inserts the jobs of slots, but for those whose dedup key a live job holds, and wakes their queues.';
