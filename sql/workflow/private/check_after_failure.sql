-- Purpose: refuse an after_failure that does not exist.
-- Invariant: reads nothing. Raises: 22023.
create or replace function jobq_private.check_after_failure(jobs jobq_private.new_job[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from unnest(check_after_failure.jobs) as j
        where j.after_failure not in ('cancel', 'wait', 'run')
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after_failure must be cancel, wait or run'
        );
    end if;
end
$$;

revoke all on function jobq_private.check_after_failure from public;

comment on function jobq_private.check_after_failure is
'Refuses an after_failure that does not exist.';
