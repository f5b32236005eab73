-- Purpose: refuse a new row with a past, and set the job's place in the order of claims.
-- Invariant: only redrive_jobs() stores a job with a past: that of its row in the archive; and
-- receive_jobs(), with the past that another database has sent. No WHEN clause: PostgreSQL parses
-- one again for every statement. Raises: JQ002.
create or replace function jobq_private.look_at_birth()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if not (
        new.state in ('queued', 'blocked') and new.max_attempts > 0
        and new.previous_state is null and new.attempt = 0 and new.uncounted = 0
        and num_nonnulls(new.claimed_at, new.lease_expires_at, new.worker) = 0
        and (new.concurrency_key is null or new.key_id is not null)
    ) and not jobq_private.has_known_past(new) then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: a new job must be queued or blocked, under its key, and have no past',
            new.job_id
        ));
    end if;
    -- The transaction gets its number before the clock is read: keep_hint() relies on it.
    new.due_at := case
        when new.state in ('queued', 'retrying') and new.key_id is null
            and pg_current_xact_id() is not null
        then greatest(new.run_at, clock_timestamp())
    end;
    return new;
end
$$;

create or replace trigger job_birth
before insert on jobq_private.job
for each row execute function jobq_private.look_at_birth();
