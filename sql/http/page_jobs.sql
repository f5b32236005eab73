-- Purpose: Returns a page of jobs as JSON documents, newest first; cursor continues it.
-- Invariant: ids are ordered by time, so pages do not shift while jobs are added, and
-- each page starts with a descent of the primary keys. The times compare the time in
-- the id. A page ends early at about 4 MB. cursor is null in the very last row, else
-- `before` of the page after that row. A search that has read 100,000 jobs before the
-- page is full ends with a row whose item is null. Raises: 22004, 22023.
-- Argument trigger: only IMMEDIATE or DELAYED ones, or firings, which are CRON.
-- Argument max_jobs: maximum number, 1 to 1000.
-- Members item: job_document
-- Example: select * from jobq_http.page_jobs('{queued,running}', max_jobs => 10);
create or replace function jobq_http.page_jobs(
    states text[] default null, kind text default null, queue text default null,
    created_after timestamptz default null, created_before timestamptz default null,
    metadata jsonb default null, before uuid default null, max_jobs integer default 50,
    idempotency_key text default null, trigger text default null, vocabulary text default null,
    error_code text default null
)
returns table (item json, cursor uuid) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
declare
    _max_bytes constant integer := 4194304;
    _rows integer := 0;
    _bytes bigint := 0;
    _job jobq.job;
begin
    perform jobq_private.check_count('max_jobs', page_jobs.max_jobs, 1, 1000);
    perform jobq_private.check_states(page_jobs.states);

    for _job in
        select s.*
        from jobq_private.search_jobs(
            page_jobs.states, page_jobs.kind, page_jobs.queue, page_jobs.metadata,
            page_jobs.idempotency_key, page_jobs.trigger, page_jobs.error_code,
            jobq_private.id_floor(page_jobs.created_after),
            least(page_jobs.before, jobq_private.id_floor(page_jobs.created_before)),
            page_jobs.max_jobs + 1
        ) as s
    loop
        if _rows > 0 then
            return next;
            if _rows = page_jobs.max_jobs or _bytes > _max_bytes then
                return;
            end if;
        end if;
        cursor := _job.job_id;
        item := case
            when _job.state is not null
            then jobq_private.job_document(_job, page_jobs.vocabulary)
        end;
        _bytes := _bytes + coalesce(octet_length(item::text), 0);
        _rows := _rows + 1;
    end loop;
    if _rows > 0 then
        cursor := case when item is null then cursor end;
        return next;
    end if;
end
$$;
grant execute on function jobq_http.page_jobs to jobq_operator, jobq_reader;
