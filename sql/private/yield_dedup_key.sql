-- Purpose: after a lost insert: the live job that holds the dedup key, or the new id once
-- the key may be tried again.
-- Invariant: replace cancels a job that waits, and never one that runs.
-- Raises: nothing.
create or replace function jobq_private.yield_dedup_key(
    kind text, dedup_key text, dedup text, new_id uuid, out job_id uuid, out created boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _state text;
begin
    select j.job_id, j.state into job_id, _state
    from jobq_private.job as j
    where j.kind = yield_dedup_key.kind
    and j.dedup_key = yield_dedup_key.dedup_key
    and j.dedup is not null;

    created := not found or (yield_dedup_key.dedup = 'replace' and _state <> 'running');
    if created then
        update jobq_private.job as j
        set
            state = 'cancelled',
            cancel_reason = 'replaced by ' || yield_dedup_key.new_id
        where j.job_id = yield_dedup_key.job_id and j.state in ('queued', 'retrying');
        job_id := yield_dedup_key.new_id;
    end if;
end
$$;

revoke all on function jobq_private.yield_dedup_key(text, text, text, uuid) from public;

comment on function jobq_private.yield_dedup_key(text, text, text, uuid) is
'Finds the live job that holds a dedup key, or makes room for the one that replaces it.';
