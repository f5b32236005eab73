-- Purpose: the age of the oldest transaction that may have been open in a snapshot, one of the
-- last 1000; and note (in jobq.touched, until the transaction ends) that a claim has asked, which
-- it does at the first row that others have touched.
-- Invariant: reads nothing. Hot: its callers pin the search path. Raises: nothing.
create or replace function jobq_private.touched_age(snapshot pg_snapshot)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
as $$
begin
    return case
        when set_config('jobq.touched', 'on', true) = 'on'
        then least(age(pg_snapshot_xmin(snapshot)::xid), 1000)
    end;
end
$$;

revoke all on function jobq_private.touched_age from public;

comment on function jobq_private.touched_age is
'Returns the age of the oldest transaction that may have been open in a snapshot.';
