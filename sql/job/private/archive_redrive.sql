-- Purpose: a finished job that is set to queued or blocked goes back among the live ones, blocked if it
-- has to wait again; it stays as it is where its idempotency key or dedup key stands for another job
-- by now.
-- Invariant: the attempt goes on counting, as a fencing token must; what was spent so far
-- no longer counts against max_attempts, and it does not expire again. Before the update, so
-- that it can be dropped; after it, archive_leave takes the row out. Nobody looks whether others
-- wait for it: it counts as awaited. Raises: nothing.
create or replace function jobq_private.redrive_archived()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.idempotency_key is not null and new.job_id <> jobq_private.hold_key(
        new.kind, new.queue, new.idempotency_key, new.job_id
    ) then
        return null;
    end if;
    if jobq_private.wait_again(array[new.job_id]) <> '{}' then
        new.state := 'blocked';
    end if;
    insert into jobq_private.job (
        run_at, uncounted, state, previous_state, is_awaited, waits_since, lane,
        last_error_code, last_error,
        -- columns of jobq_private.job but expires_at, expiries, claimed_at, heartbeat_at,
        -- lease_expires_at, cancel_requested_at, cancel_reason, worker, place, progress:
        job_id, created_at, slot_at, lease, timeout, schedule_id, attempt, max_attempts,
        delivery_version, priority, region, queue, kind, lane_id, concurrency_key,
        batch_id, idempotency_key, dedup_key, dedup, last_error_details, keep, metadata,
        payload
        -- end
    )
    values (
        now(), new.attempt, new.state, new.previous_state, true, clock_timestamp(), new.lane,
        case when new.last_error_code not in ('PARENT_FAILED', 'PARENT_GONE') then new.last_error_code end,
        case when new.last_error_code not in ('PARENT_FAILED', 'PARENT_GONE') then new.last_error end,
        -- the same of new:
        new.job_id, new.created_at, new.slot_at, new.lease, new.timeout,
        new.schedule_id, new.attempt, new.max_attempts, new.delivery_version,
        new.priority, new.region, new.queue, new.kind, new.lane_id, new.concurrency_key,
        new.batch_id, new.idempotency_key, new.dedup_key, new.dedup,
        new.last_error_details, new.keep, new.metadata, new.payload
        -- end
    )
    on conflict (kind, dedup_key, (case when dedup is null then job_id end))
    where dedup_key is not null do nothing;
    if not found then
        insert into jobq_private.look (about, id) values ('parent', new.job_id);
        return null;
    end if;
    if new.lane_id is not null then
        update jobq_private.gate as g
        set held_until = '-infinity', hold_reason = null
        where g.gate_id = new.lane_id
        and g.held_until = 'infinity'
        and g.hold_reason = format('job %s is dead', new.job_id);
        perform jobq_private.call_lane(
            new.lane_id, new.queue, new.concurrency_key, new.priority, now()
        );
    end if;
    if new.state = 'blocked' then
        perform jobq_private.look_again(array[new.job_id], array[new.job_id]);
    end if;
    if new.last_error_code = 'EVENT_TIMEOUT' then
        perform jobq_private.forget_timeouts(array[new.job_id]);
    end if;
    perform jobq_private.wake(array[new.queue]);
    return new;
end
$$;

revoke all on function jobq_private.redrive_archived from public;

comment on function jobq_private.redrive_archived is
'Puts a finished job that is set to queued back among the live ones.';

create or replace trigger archive_redrive
before update on jobq_private.job_archive
for each row when (new.state in ('queued', 'blocked') and old.state in ('dead', 'cancelled'))
execute function jobq_private.redrive_archived();
