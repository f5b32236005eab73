-- Purpose: act when a live job stops running or ends: a job in a final state moves to the
-- archive; another ended attempt is recorded, and a worker is woken for the next one.
-- Invariant: update … set state is therefore enough, for functions and psql alike.
create or replace function jobq_private.job_end()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if new.state in ('succeeded', 'dead', 'cancelled') then
        perform jobq_private.archive_jobs(array[new.job_id], array[new.attempt], new.state);
    elsif old.lease_expires_at is not null then
        insert into jobq_private.attempt (
            job_id, attempt, state, started_at, finished_at, worker, error_code, error,
            error_details, endpoint, region
        )
        values (
            old.job_id, old.attempt, new.state, old.claimed_at,
            greatest(clock_timestamp(), old.created_at), old.worker,
            case when new.state = 'retrying' then new.last_error_code end,
            case when new.state = 'retrying' then new.last_error end,
            case when new.state = 'retrying' then new.last_error_details end,
            case when old.delivery_version is not null then old.kind end,
            old.region
        );
        if num_nonnulls(old.key_id, old.slot) > 0 then
            perform jobq_private.on_end(array[row(
                old.job_id, old.attempt, new.state, old.queue, old.kind, old.key_id,
                old.concurrency_key, old.slot, old.is_awaited, old.batch_id, false
            )::jobq_private.ending]);
        end if;
    end if;
    if new.state in ('queued', 'retrying') and new.state <> old.state then
        perform jobq_private.wake(array[new.queue]);
    end if;
    return null;
end
$$;

-- One trigger with a short condition: PostgreSQL parses it again for every statement, claims too.
create or replace trigger job_end
after update on jobq_private.job
for each row
when (new.lease_expires_at is null)
execute function jobq_private.job_end();
