-- Purpose: a page of jobs, newest first.
-- Invariant: before is the last id of the page before: ids are ordered by time, so pages
-- are stable while jobs are added. Raises: 22004, 22023.
-- Argument state: only this one; null means all.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument before: only jobs made before this one: the last id of the page before.
-- Argument max_jobs: at most so many, 1 to 1000.
-- Returns: rows of jobq.job.
-- Example: select job_id, state from jobq.list_jobs('dead', max_jobs => 10);
create or replace function jobq.list_jobs(
    state text default null,
    kind text default null,
    queue text default null,
    before uuid default null,
    max_jobs integer default 50
)
returns setof jobq.job
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
begin
    if list_jobs.max_jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs');
    elsif list_jobs.max_jobs not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_jobs must be from 1 to 1000'
        );
    elsif list_jobs.state not in (
        'blocked', 'queued', 'running', 'retrying', 'succeeded', 'dead', 'cancelled'
    ) then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'state must be blocked, queued, running, retrying, succeeded, dead or cancelled');
    end if;
    return query
    select j.*
    from jobq.job as j
    where (list_jobs.state is null or j.state = list_jobs.state)
    and (list_jobs.kind is null or j.kind = list_jobs.kind)
    and (list_jobs.queue is null or j.queue = list_jobs.queue)
    and (list_jobs.before is null or j.job_id < list_jobs.before)
    order by j.job_id desc
    limit list_jobs.max_jobs;
end
$$;

revoke all on function jobq.list_jobs from public;
grant execute on function jobq.list_jobs to jobq_operator, jobq_reader;

comment on function jobq.list_jobs is
'Returns a page of jobs, newest first; before is the last id of the page before.';
