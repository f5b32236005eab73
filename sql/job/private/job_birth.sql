-- Purpose: pass what is born queued with no past, as nearly all are, and have the rest looked at.
-- Invariant: no WHEN clause, whose text PostgreSQL would read anew for every statement, 100,000
-- instructions; and no SET clause, which costs as much as the whole: it names the schema of all it
-- calls. Raises: JQ002.
create or replace function jobq_private.look_at_birth()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
as $$
begin
    if new.previous_state is null and new.claimed_at is null
        and new.lease_expires_at is null and new.worker is null
        and new.state operator(pg_catalog.=) 'queued'
        and new.attempt operator(pg_catalog.|) new.uncounted operator(pg_catalog.=) 0
        and new.max_attempts operator(pg_catalog.>) 0
        and (new.concurrency_key is null or new.lane_id is not null)
    then
        return new;
    end if;
    perform jobq_private.check_birth(new);
    return new;
end
$$;

revoke all on function jobq_private.look_at_birth from public;

comment on function jobq_private.look_at_birth is
'Has an inserted job looked at that is not simply queued.';

create or replace trigger job_birth
before insert on jobq_private.job
for each row execute function jobq_private.look_at_birth();
