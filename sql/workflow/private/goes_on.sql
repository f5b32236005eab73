-- Purpose: whether something may follow for a batch yet: it has not ended, or one of its jobs, that
-- was redriven since, waits to be called.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.goes_on(batch jobq_private.batch)
returns boolean
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select (goes_on.batch).ended_at is null or exists (
        select from jobq_private.job as c
        where c.job_id in (
            (goes_on.batch).on_success, (goes_on.batch).on_end, (goes_on.batch).on_first_death
        )
        and c.state = 'blocked'
    )
$$;

revoke all on function jobq_private.goes_on from public;

comment on function jobq_private.goes_on is
'Whether something may follow for a batch yet.';
