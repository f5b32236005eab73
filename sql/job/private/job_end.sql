-- Purpose: what follows when a live job runs no longer, or ends: one that has reached a final
-- state leaves for the archive, and an attempt that ended without success is recorded.
-- Invariant: so `update … set state` is enough, for functions and for psql alike; the
-- foreign key has been checked before, by its name. The history has a row for each change out of running
-- by UPDATE, whoever makes it, so it has no gaps; success leaves by the archive, which is its own record,
-- and settle_failures() records what it does for all of a batch at once: its setting only tells
-- the time under which the row stands already, so nobody who sets it leaves a gap. The row is
-- not looked for, which would lock every day of the history; to add it again locks one. A
-- clock may step back meanwhile. One trigger with a short WHEN clause, since PostgreSQL reads the text of
-- each again for every statement, claims too. Raises: nothing of its own.
create or replace function jobq_private.follow_change()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _noted_at timestamptz;
begin
    if new.state in ('succeeded', 'dead', 'cancelled') then
        perform jobq_private.archive_jobs(
            array[new.job_id], array[new.attempt], new.state, null, false
        );
    end if;
    if old.lease_expires_at is not null and new.state <> 'succeeded' then
        _noted_at := jobq_private.noted_at(current_setting('jobq.notes_attempts', true));
        insert into jobq_private.attempt (
            job_id, attempt, state, started_at, finished_at, worker, error_code, error,
            error_details, endpoint, region
        )
        values (
            old.job_id, old.attempt, new.state, old.claimed_at,
            case
                when _noted_at between now() - interval '1 min'
                    and clock_timestamp() + interval '1 min'
                then _noted_at
                else clock_timestamp()
            end,
            old.worker,
            case when new.state in ('retrying', 'dead') then new.last_error_code end,
            case when new.state in ('retrying', 'dead') then new.last_error end,
            case when new.state in ('retrying', 'dead') then new.last_error_details end,
            case when old.delivery_version is not null then old.kind end,
            old.region
        )
        on conflict do nothing;
        if found and (old.lane_id is not null or old.place is not null) then
            perform jobq_private.leave_lane(new);
        end if;
    end if;
    return null;
end
$$;

revoke all on function jobq_private.follow_change from public;

comment on function jobq_private.follow_change is
'Archives a job that reached a final state, and records an attempt that ended without success.';

create or replace trigger job_end
after update on jobq_private.job
for each row
when (new.lease_expires_at is null)
execute function jobq_private.follow_change();
