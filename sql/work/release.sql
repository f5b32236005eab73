-- Purpose: Returns a leased job to its queue without counting the attempt, and returns the new
-- state.
-- Invariant: waits for a transaction that has locked the job. Raises: 22004, 22023, JQ001, JQ003.
-- Argument run_at: earliest start; null means as soon as possible.
-- Returns: the new state: queued, or cancelled if that was requested.
-- Example: select jobq.release(:'running', 1, now() + interval '5 min');
create or replace function jobq.release(
    job_id uuid, attempt integer, run_at timestamptz default null
)
returns text language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off as $$
declare
    _state text;
begin
    perform from jobq_private.job as j where j.job_id = release.job_id for update;
    select r.state into _state
    from jobq.release_many(
        array[release.job_id], array[release.attempt], release.run_at
    ) as r;
    if _state is null then
        perform jobq_private.refuse_attempt(release.job_id, release.attempt);
    end if;
    return _state;
end
$$;
grant execute on function jobq.release to jobq_worker;
