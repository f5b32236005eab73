-- Purpose: insert many checked jobs that have no dedup key, and wake their queues; their ids, in
-- the order of the jobs.
-- Invariant: one statement, whatever their number. ids has, by ordinal, the ids under which
-- idempotency keys are held already. Raises: 22004, 22023, JQ001, JQ002, JQ006.
create or replace function jobq_private.store_jobs(
    jobs jobq_private.new_job[], ids uuid[] default '{}', is_checked boolean default false
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _ids constant uuid[] := case
        when store_jobs.ids = '{}' then array(
            select jobq_private.new_id() from generate_subscripts(store_jobs.jobs, 1)
        )
        else array(
            select coalesce(store_jobs.ids[j.ordinal], jobq_private.new_id())
            from unnest(store_jobs.jobs) as j
        )
    end;
    _queues text[];
    _has_keys boolean;
    _has_links boolean;
begin
    with stored as (
        insert into jobq_private.job as j (
            -- columns of jobq_private.job_rows:
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            idempotency_key, dedup_key, dedup, metadata, schedule_id, slot_at,
            delivery_version, concurrency_key, lane_id, expires_at, keep, state, batch_id,
            is_awaited
            -- end
        )
        select
            -- the same of r:
            r.job_id, r.kind, r.payload, r.queue, r.run_at, r.priority, r.max_attempts,
            r.timeout, r.lease, r.idempotency_key, r.dedup_key, r.dedup, r.metadata,
            r.schedule_id, r.slot_at, r.delivery_version, r.concurrency_key, r.lane_id,
            r.expires_at, r.keep, r.state, r.batch_id, r.is_awaited
            -- end
        from jobq_private.job_rows(store_jobs.jobs, _ids) as r
        where store_jobs.is_checked
        or (select jobq_private.check_payload_schemas(store_jobs.jobs))
        returning
            case when j.run_at < now() + interval '60 s' then j.queue end as queue,
            j.lane_id is not null as has_key,
            j.state = 'blocked' or j.batch_id is not null as has_link
    ),
    kinds as (
        select s.queue, bool_or(s.has_key) as has_keys, bool_or(s.has_link) as has_links
        from stored as s
        group by s.queue
    )
    select
        array_agg(k.queue) filter (where k.queue is not null), bool_or(k.has_keys),
        bool_or(k.has_links)
    into _queues, _has_keys, _has_links
    from kinds as k;

    if _has_links then
        perform jobq_private.follow(store_jobs.jobs, _ids);
    end if;
    if _has_keys then
        perform jobq_private.call_lanes(_ids);
    end if;
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
    return _ids;
end
$$;

revoke all on function jobq_private.store_jobs from public;

comment on function jobq_private.store_jobs is
'Inserts many checked jobs without dedup keys, wakes their queues, and returns their ids.';
