-- Purpose: refuse a change of what identifies a job, and of the payload of one that has run.
-- Invariant: whoever writes, the payload changes only while no attempt has begun. Fires only
-- for an UPDATE that names one of these columns, and has no WHEN clause, whose text every
-- statement would copy: so no hot statement pays for it. Raises: JQ002.
create or replace function jobq_private.refuse_change()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
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
    or (new.payload is distinct from old.payload
        and (
            old.attempt > 0 or new.state <> old.state
            or old.state not in ('queued', 'blocked')
        ))
    or (old.concurrency_key is not null
        and (new.lane_id is null or (new.queue = old.queue) <> (new.lane_id = old.lane_id)))
    or (old.place is not null and new.queue <> old.queue)
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: id, kind, keys, schedule, batch, delivery_version and created_at, and payload once it has run',
            old.job_id
        ));
    end if;
    return new;
end
$$;

revoke all on function jobq_private.refuse_change from public;

comment on function jobq_private.refuse_change is
'Refuses a change of what identifies a job.';

create or replace trigger job_identity
before update of
job_id, kind, payload, created_at, idempotency_key, dedup_key, dedup, schedule_id, slot_at,
delivery_version, concurrency_key, lane_id, queue, batch_id
on jobq_private.job
for each row
execute function jobq_private.refuse_change();
