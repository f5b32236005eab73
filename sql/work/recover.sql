-- Purpose: Ends attempts whose lease has expired, and returns the new states of the jobs.
-- Invariant: oldest lease first, SKIP LOCKED, so any number of callers may run it. The attempt
-- counts; after max_expiries expiries a job is dead, so that a job which kills its workers stops.
-- Raises: 22004, 22023.
-- Argument max_jobs: maximum number, 1 to 100000.
-- Column state: the new state: retrying, dead or cancelled.
-- Example: select * from jobq_internal.recover();
create or replace function jobq_internal.recover(max_jobs integer default 1000)
returns table (job_id uuid, attempt integer, state text) language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    _now constant timestamptz := clock_timestamp();
    _expired jobq_private.failure[];
begin
    perform jobq_private.check_count('max_jobs', recover.max_jobs, 1, 100000);
    select
        array_agg(row(
            e.job_id, e.attempt, 'the lease of worker ' || e.worker || ' expired',
            'LEASE_EXPIRED', true, null, null
        )::jobq_private.failure)
    into _expired
    from (
        select j.job_id, j.attempt, j.worker
        from jobq_private.job as j
        where j.state = 'running' and j.lease_expires_at < _now
        order by j.lease_expires_at
        limit recover.max_jobs
        for update skip locked
    ) as e;

    if _expired is not null then
        return query select s.* from jobq_private.settle_failures(_expired, true) as s;
    end if;
end
$$;
grant execute on function jobq_internal.recover to jobq_worker, jobq_operator;
