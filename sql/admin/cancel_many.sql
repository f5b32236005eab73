-- Purpose: Cancels many waiting jobs, requests cancellation of running ones, and
-- returns the outcomes.
-- Invariant: each as by cancel(), in one transaction and few statements. Raises: 22004,
-- 22023, JQ001, JQ002.
-- Argument job_ids: these jobs; none may have ended. Other filters apply too.
-- Argument state: only jobs in this state: blocked, queued, retrying or running; null means all.
-- Argument max_jobs: maximum number, 1 to 100000, the oldest first.
-- Argument reason: reason, stored with each job, at most 512 characters.
-- Column outcome: cancelled or cancel_requested; in a dry run the state of the job.
-- Example: select * from jobq.cancel_many(queue => 'default', reason => 'wrong input', dry_run => true);
create or replace function jobq.cancel_many(
    job_ids uuid[] default null, queue text default null, kind text default null,
    metadata jsonb default null, state text default null, max_jobs integer default 1000,
    dry_run boolean default false, reason text default null
)
returns table (job_id uuid, outcome text) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
    _chosen uuid[];
begin
    _chosen := jobq_private.choose_jobs(
        cancel_many.job_ids, cancel_many.queue, cancel_many.kind, cancel_many.metadata,
        cancel_many.max_jobs, cancel_many.dry_run, cancel_many.reason,
        '{blocked,queued,retrying,running}', cancel_many.state
    );
    if not cancel_many.dry_run then
        return query
        select c.* from jobq_private.cancel_jobs(_chosen, cancel_many.reason) as c;
        return;
    end if;
    return query
    select c.job_id, j.state
    from unnest(_chosen) as c (job_id)
    join jobq_private.job as j on j.job_id = c.job_id;
end
$$;
grant execute on function jobq.cancel_many to jobq_operator;
