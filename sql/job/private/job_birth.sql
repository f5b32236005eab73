-- Purpose: refuse a new row with a past, and set the job's place in the order of claims.
-- Invariant: only redrive_jobs() stores a job with a past: that of its row in the archive, which
-- it deletes later; and receive_jobs(), with the past that another database has sent, which it
-- has stored before, in the same transaction. No WHEN clause: PostgreSQL parses one again for
-- every statement. Raises: JQ002.
create or replace function jobq_private.job_birth()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _is_new constant boolean := new.state in ('queued', 'blocked')
        and new.previous_state is null and new.attempt = 0 and new.uncounted = 0;
    _is_known boolean := _is_new;
begin
    if not _is_new then
        _is_known := new.state in ('queued', 'blocked') and new.attempt = new.uncounted and exists (
            select from jobq_private.job_archive as a
            where a.job_id = new.job_id and a.attempt = new.attempt
            and a.state = new.previous_state and a.state in ('dead', 'cancelled')
            and a.finished_at >= jobq_private.id_time(new.job_id) - interval '1 day'
        )
        or new.state in ('queued', 'retrying') and exists (
            select from jobq_private.moved_job as m
            where m.job_id = new.job_id and m.shard_id is null
            and m.job ->> 'state' = new.state
            and m.job ->> 'previous_state' is not distinct from new.previous_state
            and (m.job ->> 'attempt')::integer = new.attempt
            and (m.job ->> 'uncounted')::integer = new.uncounted
        );
    end if;
    if not (
        _is_known and new.attempt - new.uncounted < new.max_attempts
        and num_nonnulls(new.claimed_at, new.lease_expires_at, new.worker) = 0
        and (new.concurrency_key is null or new.key_id is not null)
    ) then
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
for each row execute function jobq_private.job_birth();
