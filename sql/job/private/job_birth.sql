-- Purpose: refuse a row that claims a past it does not have.
-- Invariant: a new job has no previous state, and is queued or blocked;
-- only what redrives brings one back, from dead or cancelled: a trigger, or redrive_jobs().
-- The WHEN clause keeps the function away from every ordinary enqueue, and is short, since
-- PostgreSQL reads its text again for every statement. Raises: JQ002.
create or replace function jobq_private.refuse_forged_birth()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.state in ('queued', 'blocked')
        and new.attempt = new.uncounted
        and new.max_attempts > 0
        and num_nonnulls(new.claimed_at, new.lease_expires_at, new.worker) = 0
        and (new.concurrency_key is null or new.lane_id is not null)
        and (
            (new.previous_state is null and new.attempt = 0)
            or (
                new.previous_state in ('dead', 'cancelled')
                and (
                    pg_trigger_depth() > 1 or current_setting('jobq.redrives', true) = 'on'
                )
            )
        )
    then
        return new;
    end if;
    perform jobq_private.raise_error('ILLEGAL_STATE', format(
        'job_id %s: a job is born queued or blocked, in the lane of its key, with no previous state, attempt or lease',
        new.job_id
    ));
    return null;
end
$$;

revoke all on function jobq_private.refuse_forged_birth from public;

comment on function jobq_private.refuse_forged_birth is
'Refuses an inserted job that claims a past.';

create or replace trigger job_birth
before insert on jobq_private.job
for each row
when (
    new.state <> 'queued'
    or new.attempt | new.uncounted <> 0
    or new.max_attempts < 1
    or num_nonnulls(new.previous_state, new.claimed_at, new.lease_expires_at, new.worker) > 0
    or (new.concurrency_key is not null and new.lane_id is null)
)
execute function jobq_private.refuse_forged_birth();
