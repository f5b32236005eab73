-- Purpose: whether new jobs stand between two that are blocked already, so that others who do the
-- same could close a ring with them; if so, wait until these have committed.
-- Invariant: one at a time does this, until its commit; the caller then looks at the arrows anew.
-- A transaction with one snapshot would not see what they have added. Raises: 22023.
create or replace function jobq_private.join_alone(
    arrows jobq_private.arrow[], others uuid[], size integer
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (select from unnest(arrows) as a where a.child > size)
        or not exists (
            select from unnest(arrows) as a
            join jobq_private.job as j on j.job_id = others[a.parent - size]
            where a.parent > size and a.child <= size and j.state = 'blocked'
        )
    then
        return false;
    elsif current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'jobs come between two that are blocked only at the isolation level read committed'
        );
    end if;
    perform pg_advisory_xact_lock(jobq_private.lock_class('joining'), 0);
    return true;
end
$$;

revoke all on function jobq_private.join_alone from public;

comment on function jobq_private.join_alone is
'Whether new jobs stand between two that are blocked; then nobody else adds such ones meanwhile.';
