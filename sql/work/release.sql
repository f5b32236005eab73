-- Purpose: give a leased job back unfinished: shutdown, or a snooze until run_at.
-- Invariant: the attempt is not counted; a stale one changes nothing. Waits for a transaction
-- that holds the job.
-- Raises: 22004, 22023, JQ001, JQ003.
-- Argument run_at: not before this instant; null means as soon as possible.
-- Returns: the new state: queued, or cancelled where that was asked for.
-- Example: select jobq.release(:'running', 1, now() + interval '5 min');
create or replace function jobq.release(
    job_id uuid, attempt integer, run_at timestamptz default null
)
returns text
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
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

revoke all on function jobq.release from public;
grant execute on function jobq.release to jobq_worker;

comment on function jobq.release is
'Gives a leased job back unfinished, its attempt not counted, and returns the new state.';
