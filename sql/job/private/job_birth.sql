-- Purpose: pass what is born queued with no past, as nearly all are, have the rest looked at, and set
-- the job's place in the order of claims.
-- Invariant: no WHEN clause, whose text PostgreSQL would read anew for every statement, 100,000
-- instructions; and no SET clause, which costs as much as the whole: it names the schema of all it
-- calls. Raises: JQ002.
create or replace function jobq_private.look_at_birth()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.previous_state is null and new.claimed_at is null
        and new.lease_expires_at is null and new.worker is null
        and new.state operator(pg_catalog.=) 'queued'
        and new.attempt operator(pg_catalog.|) new.uncounted operator(pg_catalog.=) 0
        and new.max_attempts operator(pg_catalog.>) 0
        and (new.concurrency_key is null or new.lane_id is not null)
    then
        null;
    else
        perform jobq_private.check_birth(new);
    end if;
    -- The transaction gets its number before the clock is read: find_jobs() relies on it.
    new.due_at := case
        when new.state = 'queued' and new.lane_id is null and pg_current_xact_id() is not null
        then greatest(new.run_at, clock_timestamp())
    end;
    return new;
end
$$;

create or replace trigger job_birth
before insert on jobq_private.job
for each row execute function jobq_private.look_at_birth();
