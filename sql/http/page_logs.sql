-- Purpose: Returns a page of the log of a job as JSON documents, in order or newest first.
-- Invariant: lines are numbered as they are written, so pages do not change, and each
-- starts with a descent of the index. Raises: 22004, 22023, JQ001.
-- Argument after: only lines after this one; null for the first page.
-- Argument max_lines: maximum number, 1 to 1000.
-- Argument before: only lines before this one, the newest first; the greatest bigint for the
-- end of the log.
-- Members item: page_logs
-- Example: select * from jobq_http.page_logs(:'running');
create or replace function jobq_http.page_logs(
    job_id uuid, after bigint default null, max_lines integer default 50,
    before bigint default null
)
returns table (item json, cursor bigint) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
begin
    perform jobq_private.check_count('max_lines', page_logs.max_lines, 1, 1000);
    perform jobq.get_job(page_logs.job_id);
    return query
    select
        json_build_object(
            'log_id', t.sequence::text, 'execution_id', t.job_id, 'attempt_number', t.attempt,
            'level', t.level, 'message', t.message, 'logged_at', t.logged_at
        ),
        case when lead(t.sequence) over (order by t.n) is not null then t.sequence end
    from (
        (
            select l.*, l.sequence as n
            from jobq_private.job_log as l
            where page_logs.before is null
            and l.job_id = page_logs.job_id and l.sequence > coalesce(page_logs.after, -1)
            order by l.sequence
            limit page_logs.max_lines + 1
        )
        union all
        (
            select l.*, -l.sequence
            from jobq_private.job_log as l
            where l.job_id = page_logs.job_id and l.sequence < page_logs.before
            and l.sequence > coalesce(page_logs.after, -1)
            order by l.sequence desc
            limit page_logs.max_lines + 1
        )
    ) as t
    order by t.n
    limit page_logs.max_lines;
end
$$;
grant execute on function jobq_http.page_logs to jobq_worker, jobq_operator, jobq_reader;
