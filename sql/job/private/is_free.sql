-- Purpose: whether no other transaction holds a job; if so, it is locked for the caller.
-- Invariant: asks the row's lock, since a mark that several transactions or savepoints have left
-- bears a number of another kind than a transaction's. Waits for nobody. Raises: nothing.
create or replace function jobq_private.is_free(job_id uuid)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    perform from jobq_private.job as j where j.job_id = is_free.job_id for update skip locked;
    return found;
end
$$;

revoke all on function jobq_private.is_free from public;

comment on function jobq_private.is_free is
'Whether no other transaction holds a job, which is locked for the caller then.';
