-- Purpose: Returns a page of the executions of a job as JSON documents, newest first.
-- Invariant: a one-shot job has one execution, a schedule one per slot, found by its index. The
-- cursor stays valid when its execution is past retention. Slots whose job the overlap rule
-- skipped have no execution. cursor is the slot of the row. Raises: 22004, 22023, JQ001.
-- Argument before: only slots before this one; null for the first page.
-- Argument max_executions: maximum number, 1 to 1000.
-- Members item: execution_document
-- Example: select * from jobq_http.page_executions(:'waiting');
create or replace function jobq_http.page_executions(
    job_id uuid, before timestamptz default null, max_executions integer default 50
)
returns table (item json, cursor timestamptz) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
begin
    perform jobq_private.check_count('max_executions', page_executions.max_executions, 1, 1000);
    if not exists (
        select from jobq_private.schedule as s where s.schedule_id = page_executions.job_id
    ) then
        item := jobq_http.show_execution(page_executions.job_id);
        if page_executions.before is null then
            return next;
        end if;
        return;
    end if;
    return query
    select
        jobq_private.execution_document(p.job),
        case when lead(p.slot_at) over (order by p.slot_at desc) is not null then p.slot_at end
    from (
        select j as job, j.slot_at
        from jobq.job as j
        where j.schedule_id = page_executions.job_id
        and j.slot_at < coalesce(page_executions.before, 'infinity')
        order by j.slot_at desc
        limit page_executions.max_executions + 1
    ) as p
    order by p.slot_at desc
    limit page_executions.max_executions;
end
$$;
grant execute on function jobq_http.page_executions to jobq_producer, jobq_operator, jobq_reader;
