-- Purpose: insert jobs prepared by store_jobs(), wake their queues, and return the ids of those
-- whose dedup key was free. Raises: JQ010.
create or replace function jobq_private.insert_jobs(jobs jobq_private.new_job[])
returns uuid[] language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
    _stored uuid[];
    _queues text[];
begin
    if cardinality(jobs) = 0 then
        return '{}'::uuid[];
    end if;
    with stored as (
        insert into jobq_private.job as j (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            idempotency_key, dedup_key, dedup, metadata, schedule_id, slot_at,
            delivery_version, concurrency_key, key_id, expires_at, keep, state, batch_id,
            is_awaited, cost
        )
        select
            n.job_id, n.kind, n.payload, n.queue, n.run_at, n.priority, n.max_attempts,
            n.timeout, n.lease, n.idempotency_key, n.dedup_key,
            case when n.dedup in ('skip', 'replace', 'debounce') then n.dedup end, n.metadata,
            n.schedule_id, n.slot_at, n.delivery_version, n.concurrency_key, n.key_id,
            n.expires_at, n.keep,
            case when num_nonnulls(n.callback_of, n.after) = 0 then 'queued' else 'blocked' end,
            n.batch_id, n.is_awaited, n.cost
        from unnest(insert_jobs.jobs) as n
        on conflict (kind, dedup_key, (
            case when dedup is null or (dedup = 'debounce' and attempt > 0) then job_id end
        ))
        where dedup_key is not null do nothing
        returning j.job_id, j.queue
    )
    select array(select s.job_id from stored as s), array(select distinct s.queue from stored as s)
    into _stored, _queues;
    if exists (select from unnest(insert_jobs.jobs) as n where n.max_depth is not null) then
        perform jobq_private.check_queue_depth(_stored);
    end if;
    perform jobq_private.wake(_queues);
    return _stored;
end
$$;
