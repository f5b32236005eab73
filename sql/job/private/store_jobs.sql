-- Purpose: insert many checked jobs that have no dedup key, and wake their queues.
-- Invariant: one statement, whatever their number. ids has, by ordinal, the ids under which
-- idempotency keys are held already. Raises: 22004, 22023, JQ001, JQ002, JQ006.
create or replace function jobq_private.store_jobs(
    jobs jobq_private.new_job[], ids uuid[] default '{}', is_checked boolean default false
)
returns table (ordinal integer, job_id uuid)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    _ordinals integer[];
    _ids uuid[];
    _queues text[];
    _has_keys boolean;
    _has_links boolean;
begin
    with given as materialized (
        select
            coalesce(store_jobs.ids[j.ordinal], jobq_private.new_id()) as job_id,
            j.ordinal, j.kind, j.payload, j.priority, coalesce(j.queue, '') as queue,
            coalesce(j.run_at, now()) as run_at, j.max_attempts, j.timeout,
            j.idempotency_key, j.metadata, j.concurrency_key, j.expires_at, j.batch_id,
            j.is_awaited,
            case
                when j.after is null and j.callback_of is null then 'queued' else 'blocked'
            end as state
        from unnest(store_jobs.jobs) as j
    ),
    policy as materialized (
        select d.kind as of_kind, d.queue as of_queue, s.*
        from (select distinct g.kind, g.queue from given as g) as d
        cross join lateral
            jobq_private.settings_for(d.kind, nullif(d.queue, '')) as s
    ),
    stored as (
        insert into jobq_private.job (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            idempotency_key, metadata, delivery_version, concurrency_key, lane_id, expires_at, keep,
            state, batch_id, is_awaited
        )
        select
            g.job_id, g.kind, coalesce(g.payload, '{}'), p.queue, g.run_at,
            coalesce(g.priority, p.priority), coalesce(g.max_attempts, p.max_attempts),
            coalesce(g.timeout, p.timeout), p.lease, g.idempotency_key,
            coalesce(g.metadata, '{}'), p.delivery_version,
            k.concurrency_key,
            jobq_private.lane_of(p.queue, k.concurrency_key, g.kind, p.is_limited),
            g.expires_at, p.keep,
            g.state, g.batch_id, coalesce(g.is_awaited, false)
        from given as g
        join policy as p on p.of_kind = g.kind and p.of_queue = g.queue
        cross join lateral (
            select coalesce(g.concurrency_key, g.payload #>> p.concurrency_key)
        ) as k (concurrency_key)
        where store_jobs.is_checked
        or (select jobq_private.check_payload_schemas(store_jobs.jobs))
    )
    select
        array_agg(g.ordinal),
        array_agg(g.job_id),
        (
            select array_agg(distinct p.queue)
            from policy as p
            join given as s on s.kind = p.of_kind and s.queue = p.of_queue
            where s.run_at < now() + interval '60 s'
        ),
        bool_or(g.concurrency_key is not null)
        or exists (
            select from policy as p where p.concurrency_key is not null or p.is_limited
        ),
        bool_or(g.state = 'blocked' or g.batch_id is not null)
    into _ordinals, _ids, _queues, _has_keys, _has_links
    from given as g;

    if _has_links then
        perform jobq_private.follow(store_jobs.jobs, array(
            select i.job_id
            from unnest(store_jobs.jobs) with ordinality as j
            join unnest(_ordinals, _ids) as i (ordinal, job_id) on i.ordinal = j.ordinal
            order by j.ordinality
        ));
    end if;
    if _has_keys then
        perform jobq_private.call_lanes(_ids);
    end if;
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
    return query select r.ordinal, r.job_id from unnest(_ordinals, _ids) as r (ordinal, job_id);
end
$$;

revoke all on function jobq_private.store_jobs from public;

comment on function jobq_private.store_jobs is
'Inserts many checked jobs without dedup keys, and wakes their queues.';
