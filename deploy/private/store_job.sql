-- Deploy jobq:private/store_job to pg
-- Made by sql/snapshot.py from sql/private/store_job.sql: edit that.
begin;
set local role jobq_owner;

-- Purpose: insert one checked job, or find the job that holds its idempotency or dedup
-- key already.
-- Invariant: unique indexes alone decide between concurrent callers; each look follows a
-- lost insert with a new snapshot. Running jobs are never replaced. The key of a
-- schedule's slot is not held: tick() fires each slot once. Who finds a job writes, if
-- only an empty message: so the commit waits for the disk and the standby as that of the
-- job must have, and a repeated call is not answered with what a failover takes back.
-- Raises: JQ004.
create or replace function jobq_private.store_job(
    job jobq_private.new_job, out job_id uuid, out created boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _new constant uuid := jobq_private.new_id();
    _set constant jobq_private.settings := jobq_private.settings_for(job.kind, job.queue);
    _run_at constant timestamptz := coalesce(job.run_at, now());
    _dedup constant text := case
        when job.dedup_key is not null
        then nullif(coalesce(job.dedup, _set.dedup), 'enqueue')
    end;
begin
    job_id := _new;
    created := true;
    if job.idempotency_key is not null and job.schedule_id is null then
        job_id := jobq_private.hold_key(
            job.kind, job.idempotency_key, _new, _set.reuse_key_after_failure
        );
        created := job_id = _new;
    end if;

    for _try in 1 .. 20 loop
        exit when not created;
        insert into jobq_private.job as j (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            idempotency_key, dedup_key, dedup, metadata, schedule_id, slot_at
        )
        values (
            _new, job.kind, coalesce(job.payload, '{}'), _set.queue, _run_at,
            coalesce(job.priority, _set.priority),
            coalesce(job.max_attempts, _set.max_attempts),
            coalesce(job.timeout, _set.timeout), _set.lease, job.idempotency_key,
            job.dedup_key, _dedup, coalesce(job.metadata, '{}'), job.schedule_id,
            job.slot_at
        )
        on conflict (kind, dedup_key) where dedup is not null do nothing;
        if found then
            if _run_at < now() + interval '60 s' then
                perform jobq_private.wake(array[_set.queue]);
            end if;
            return;
        end if;
        select f.job_id, f.created into job_id, created
        from jobq_private.yield_dedup_key(job.kind, job.dedup_key, _dedup, _new) as f;
    end loop;

    if created then
        perform jobq_private.raise_error('DEDUP_CONFLICT', format(
            'kind %s, dedup_key %s', job.kind, job.dedup_key
        ));
    end if;
    perform pg_logical_emit_message(true, 'jobq', '');
    update jobq_private.idempotency_key as k
    set job_id = store_job.job_id
    where k.kind = job.kind and k.idempotency_key = job.idempotency_key and k.job_id = _new;
end
$$;

revoke all on function jobq_private.store_job(jobq_private.new_job) from public;

comment on function jobq_private.store_job(jobq_private.new_job) is
'Inserts one checked job, or finds the job that holds its idempotency or dedup key.';

commit;
