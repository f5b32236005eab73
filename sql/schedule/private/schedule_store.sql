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
    _ids constant uuid[] := array(
        select jobq_private.new_id() from unnest(schedule_store.jobs)
    );
    _stored uuid[];
    _queues text[];
    _has_keys boolean;
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
        from jobq_private.job_rows(schedule_store.jobs, _ids) as r
        order by r.kind, r.dedup_key, r.job_id
        on conflict (kind, dedup_key, (case when dedup is null then job_id end))
        where dedup_key is not null do nothing
        returning j.job_id, j.queue, j.run_at, j.lane_id
    )
    select
        array_agg(s.job_id),
        array_agg(distinct s.queue) filter (where s.run_at < now() + interval '60 s'),
        bool_or(s.lane_id is not null)
    into _stored, _queues, _has_keys
    from stored as s;

    if _has_keys then
        perform jobq_private.call_lanes(_stored);
    end if;
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
    return query
    select j.ordinal, _ids[j.ordinality]
    from unnest(schedule_store.jobs) with ordinality as j
    where _ids[j.ordinality] = any (_stored);
end
$$;

revoke all on function jobq_private.schedule_store from public;

comment on function jobq_private.schedule_store is
'Inserts the jobs of slots, but for those whose dedup key a live job holds, and wakes their queues.';
