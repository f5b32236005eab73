-- Purpose: Returns a page of jobs, newest first; before is the last id of the previous page.
-- Invariant: ids are ordered by time, so pages do not shift while jobs are added. A
-- search that has read 100,000 jobs before the page is full ends with a row whose state
-- is null; continue from its job_id. Raises: 22004, 22023.
-- Argument max_jobs: maximum number, 1 to 1000.
-- Returns: rows of jobq.job; the last one may be a marker with only a job_id, to pass as before.
-- Example: select job_id, state from jobq.list_jobs('dead', max_jobs => 10);
create or replace function jobq.list_jobs(
    state text default null, kind text default null, queue text default null,
    before uuid default null, max_jobs integer default 50
)
returns setof jobq.job language plpgsql stable security definer
set search_path = pg_catalog, pg_temp as $$
declare
    _states constant text[] := case when list_jobs.state is not null then array[list_jobs.state] end;
begin
    perform jobq_private.check_count('max_jobs', list_jobs.max_jobs, 1, 1000);
    perform jobq_private.check_states(_states);
    return query
    select s.*
    from jobq_private.search_jobs(
        _states, list_jobs.kind, list_jobs.queue, null, null, null, null, null,
        list_jobs.before, list_jobs.max_jobs
    ) as s;
end
$$;
grant execute on function jobq.list_jobs to jobq_operator, jobq_reader;
