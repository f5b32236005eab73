-- Purpose: refuse changes of a job's identity, of the payload and cost of a job that has run, and
-- of max_attempts, timeout or lease to an invalid value. Fires only for updates that name one of
-- these columns. Raises: JQ002.
create or replace function jobq_private.job_identity()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if (
        old.job_id, old.kind, old.created_at, old.idempotency_key,
        old.dedup_key, old.dedup, old.schedule_id, old.slot_at,
        old.delivery_version, old.concurrency_key, old.batch_id
    ) is distinct from (
        new.job_id, new.kind, new.created_at, new.idempotency_key,
        new.dedup_key, new.dedup, new.schedule_id, new.slot_at,
        new.delivery_version, new.concurrency_key, new.batch_id
    )
    or ((new.payload, new.cost) is distinct from (old.payload, old.cost)
        and (
            old.attempt > 0 or new.state <> old.state
            or old.state not in ('queued', 'blocked')
        ))
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: id, kind, keys, schedule, batch, delivery_version and created_at never change, nor the payload and cost of a job that has run',
            old.job_id
        ));
    end if;
    if new.max_attempts not between 1 and 10000
        or new.timeout not between interval '1 ms' and interval '365 days'
        or new.lease not between interval '1 s' and interval '1 day'
    then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: max_attempts must be from 1 to 10000, timeout from 1 ms to 365 days, lease from 1 s to 1 day',
            old.job_id
        ));
    end if;
    return new;
end
$$;

create or replace trigger job_identity
before update of
job_id, kind, payload, created_at, idempotency_key, dedup_key, dedup, schedule_id, slot_at,
delivery_version, concurrency_key, batch_id, cost, max_attempts,
timeout, lease
on jobq_private.job
for each row
execute function jobq_private.job_identity();
