-- Purpose: store a job, or return the job that its dedup key stands for.
-- Invariant: the unique index decides between concurrent callers; each look follows a lost insert
-- with a new snapshot. After 20 lost inserts, or passes that left the same job in the way, it
-- gives up. Running jobs are never replaced; the slot of a schedule yields to one that runs.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ010.
create or replace function jobq_private.store_dedup_job(job jobq_private.new_job)
returns uuid language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
    _after constant uuid[] := job.after;
    _after_failure constant text := job.after_failure;
    _holder uuid;
    _seen uuid;
    _state text;
    _has_begun boolean;
    _has_moved boolean;
    _tries integer := 0;
begin
    if job.dedup = 'throttle' then
        insert into jobq_private.throttle as t (kind, dedup_key, job_id, until)
        values (job.kind, job.dedup_key, job.job_id, now() + job.dedup_period)
        on conflict on constraint throttle_pkey do update
        set job_id = excluded.job_id, until = excluded.until
        where t.until <= now();
        if not found then
            _holder := t.job_id from jobq_private.throttle as t
            where t.kind = job.kind and t.dedup_key = job.dedup_key;
        end if;
    end if;
    while _holder is null loop
        if job.dedup in ('skip', 'replace', 'debounce') then
            -- A key never changes: a call that names another one replaces the job that waits.
            select j.job_id, j.state, j.attempt > 0, job.dedup = 'debounce'
                and coalesce(job.concurrency_key, j.concurrency_key)
                is distinct from j.concurrency_key
            into _holder, _state, _has_begun, _has_moved
            from jobq_private.job as j
            where j.kind = job.kind and j.dedup_key = job.dedup_key
            order by
                case when job.dedup = 'debounce' then j.attempt > 0 else j.state <> 'running' end,
                j.dedup is null, j.job_id
            limit 1;
        end if;
        _tries := _tries + coalesce((_holder = _seen)::integer, 0);
        _seen := _holder;
        if _holder is null or job.dedup = 'debounce' and _has_begun then
            -- What has begun keeps its payload: the newest request comes after it.
            if _holder is not null then
                job.after := _holder || array_remove(_after, _holder);
                job.after_failure := 'run,' || coalesce(_after_failure, 'cancel');
            end if;
            if jobq_private.on_store(array[job]) <> '{}' then
                return job.job_id;
            end if;
            job.after := _after;
            job.after_failure := _after_failure;
            _holder := null;
            _tries := _tries + 1;
        elsif (job.dedup = 'replace' or _has_moved) and _state <> 'running' then
            update jobq_private.job as j
            set state = 'cancelled', cancel_reason = 'replaced by ' || job.job_id
            where j.job_id = _holder and j.state in ('blocked', 'queued', 'retrying')
            and (job.dedup = 'replace' or j.attempt = 0);
            _holder := null;
        elsif job.dedup = 'replace' and job.schedule_id is null then
            perform jobq_private.raise_error('DEDUP_CONFLICT', format(
                'kind %s, dedup_key %s: job_id %s runs', job.kind, job.dedup_key, _holder
            ));
        elsif job.dedup = 'debounce' and not jobq_private.put_off(_holder, job) then
            _holder := null;
        end if;
        if _holder is null and _tries >= 20 then
            perform jobq_private.raise_error('DEDUP_CONFLICT', format(
                'kind %s, dedup_key %s', job.kind, job.dedup_key
            ));
        end if;
    end loop;
    -- Who asks again with the idempotency key gets the job that the dedup key stands for.
    update jobq_private.idempotency_key as k
    set job_id = _holder
    where k.kind = job.kind and k.idempotency_key = job.idempotency_key
    and k.job_id = job.job_id;
    return _holder;
end
$$;
