-- Purpose: Lists the questions of jobs that wait for a person, the oldest first.
-- Invariant: reads only, by an index of the open questions. Raises: 22004, 22023.
-- Argument queue: only questions of this queue; null means all
-- Argument job_id: only questions of this job; null means all
-- Argument max_rows: maximum number, 1 to 1000
-- Argument since: only questions asked at or after this time, such as that of the last row of a
-- full page; null means all
-- Argument from_job: of those asked at `since`, only those of this job, such as that of the last
-- row, and of later ids; null means all
-- Returns: rows of jobq.question
-- Example: select name, question from jobq.list_waits();
create or replace function jobq.list_waits(
    queue text default null, job_id uuid default null, max_rows integer default 100,
    since timestamptz default null, from_job uuid default null
)
returns setof jobq.question language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    perform jobq_private.check_count('max_rows', list_waits.max_rows, 1, 1000);
    return query
    select q.*
    from jobq.question as q
    where (list_waits.queue is null or q.queue = list_waits.queue)
    and (list_waits.job_id is null or q.job_id = list_waits.job_id)
    and (list_waits.since is null or q.since >= list_waits.since)
    and (q.since = list_waits.since and q.job_id < list_waits.from_job) is not true
    order by q.since, q.job_id, q.name
    limit list_waits.max_rows;
end
$$;
grant execute on function jobq.list_waits to jobq_operator, jobq_reader;
