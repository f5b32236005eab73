-- Purpose: Returns leased jobs to their queues without counting the attempts.
-- Invariant: a stale attempt changes nothing. A job that another transaction has locked does not
-- hold up the others. Raises: 22004, 22023.
-- Argument run_at: earliest start; null means as soon as possible.
-- Column state: queued, or cancelled if that was requested; held if another transaction has
-- locked the job: release it again later; null if the attempt has lost its lease.
-- Example: select * from jobq.release_many(array[:'running'::uuid], '{1}');
create or replace function jobq.release_many(
    job_ids uuid[], attempts integer[], run_at timestamptz default null
)
returns table (job_id uuid, attempt integer, state text) language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    _locked uuid[];
begin
    perform jobq_private.check_attempts(release_many.job_ids, release_many.attempts);
    perform jobq_private.check_argument(case
        when release_many.run_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        then 'run_at must be in the years 1 to 9999'
    end);
    _locked := jobq_private.lock_attempts(release_many.job_ids, release_many.attempts);
    return query
    with released as (
        update jobq_private.job as j
        set
            state = case when j.cancel_requested_at is null then 'queued' else 'cancelled' end,
            run_at = coalesce(release_many.run_at, j.run_at)
        where j.job_id = any(_locked)
        returning j.job_id, j.attempt, j.state
    )
    select
        f.job_id, f.attempt,
        coalesce(r.state, nullif(jobq_private.held_or_lost(f.job_id, f.attempt), 'lost'))
    from unnest(release_many.job_ids, release_many.attempts)
        with ordinality as f (job_id, attempt, n)
    left join released as r on r.job_id = f.job_id and r.attempt = f.attempt
    order by f.n;
end
$$;
grant execute on function jobq.release_many to jobq_worker;
