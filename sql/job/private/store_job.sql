-- Purpose: check and insert one job, or find the job that holds its idempotency or dedup
-- key already.
-- Invariant: unique indexes alone decide between concurrent callers; each look follows a
-- lost insert with a new snapshot. Running jobs are never replaced. The slot of a schedule
-- was checked when that was declared, and its key is not held: tick() fires each slot once.
-- Before it holds a key a job is checked by the defaults where no kind or queue has rules; what is
-- stored goes by the tables.
-- held is the id under which a batch, checked as a whole, holds the job's idempotency key.
-- Who finds a job writes, if only an empty message: so the commit waits for the disk and
-- the standby as that of the job must have, and a repeated call is not answered with what
-- a failover takes back. Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
create or replace function jobq_private.store_job(
    job jobq_private.new_job, held uuid default null, out job_id uuid, out created boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _new constant uuid := coalesce(held, jobq_private.new_id());
    _is_checked boolean := held is not null or job.schedule_id is not null;
    _queue text;
    _lane_id uuid;
    _key text;
    _priority integer;
    _run_at timestamptz;
    _tries integer := 0;
    _is_told boolean;
begin
    job_id := _new;
    created := true;
    if job.idempotency_key is not null and not _is_checked then
        if jobq_private.has_kind_rules() or jobq_private.has_queue_rules() then
            select jobq_private.check_new_job(job, s) into _is_checked
            from jobq_private.settings_for(job.kind, job.queue) as s;
        else
            _is_checked := jobq_private.check_new_job(job, jobq_private.defaults());
        end if;
        job_id := jobq_private.hold_key(job.kind, job.queue, job.idempotency_key, _new);
        created := job_id = _new;
    end if;

    if job.dedup_key is not null and created then
        job_id := jobq_private.hold_dedup_key(job, _new, _is_checked);
        created := job_id = _new;
    end if;

    while created loop
        insert into jobq_private.job as j (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            idempotency_key, dedup_key, dedup, metadata, schedule_id, slot_at,
            delivery_version,
            concurrency_key, lane_id, expires_at, keep, state, batch_id
        )
        select
            _new, job.kind, coalesce(job.payload, '{}'), s.queue,
            coalesce(job.run_at, case
                when job.dedup_key is not null
                    and coalesce(job.dedup, s.dedup) = 'debounce'
                then now() + s.dedup_period
            end, now()), least(greatest(coalesce(job.priority, s.priority), -32768), 32767),
            coalesce(job.max_attempts, s.max_attempts), coalesce(job.timeout, s.timeout),
            s.lease, job.idempotency_key, job.dedup_key,
            case
                when job.dedup_key is not null
                then nullif(nullif(coalesce(job.dedup, s.dedup), 'enqueue'), 'throttle')
            end,
            coalesce(job.metadata, '{}'), job.schedule_id, job.slot_at,
            s.delivery_version,
            k.concurrency_key,
            jobq_private.lane_of(s.queue, k.concurrency_key, job.kind, s.is_limited),
            job.expires_at, s.keep,
            case
                when job.callback_of is null and coalesce(job.after, '{}') = '{}' then 'queued'
                else 'blocked'
            end,
            job.batch_id
        from jobq_private.settings_for(job.kind, job.queue) as s
        cross join lateral (
            select coalesce(job.concurrency_key, job.payload #>> s.concurrency_key)
        ) as k (concurrency_key)
        where case
            when _is_checked
            then job.schedule_id is not null
                or num_nonnulls(s.payload_schema, s.json_schema) = 0
                or jobq_private.check_payload_schemas(array[job])
            else jobq_private.check_new_job(job, s, true)
        end
        on conflict (kind, dedup_key, (case when j.dedup is null then j.job_id end))
        where dedup_key is not null do nothing
        returning j.queue, j.lane_id, j.concurrency_key, j.priority, j.run_at
        into _queue, _lane_id, _key, _priority, _run_at;
        if found then
            if job.after is not null or job.batch_id is not null then
                perform jobq_private.follow(array[job], array[_new]);
            end if;
            if _lane_id is not null then
                perform jobq_private.call_lane(_lane_id, _queue, _key, _priority, _run_at);
            end if;
            if _run_at < now() + interval '60 s' and jobq_private.announce(_queue) then
                _is_told := jobq_private.notify_queue(_queue);
            end if;
            return;
        end if;
        _tries := _tries + 1;
        if _tries = 20 then
            perform jobq_private.raise_error('DEDUP_CONFLICT', format(
                'kind %s, dedup_key %s', job.kind, job.dedup_key
            ));
        end if;
        if not _is_checked then
            select jobq_private.check_new_job(job, s) into _is_checked
            from jobq_private.settings_for(job.kind, job.queue) as s;
        end if;
        select y.job_id, y.created into job_id, created
        from jobq_private.yield_dedup_key(job, _new) as y;
    end loop;

    perform pg_logical_emit_message(true, 'jobq', '');
    update jobq_private.idempotency_key as k
    set job_id = store_job.job_id
    where k.kind = job.kind and k.idempotency_key = job.idempotency_key and k.job_id = _new;
end
$$;

revoke all on function jobq_private.store_job from public;

comment on function jobq_private.store_job is
'Checks and inserts one job, or finds the job that holds its idempotency or dedup key.';
