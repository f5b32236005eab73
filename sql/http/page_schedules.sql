-- Purpose: Returns a page of schedules as JSON documents, newest first; cursor continues it.
-- Invariant: reads only; filters as in list_schedules(). Raises: 22004, 22023.
-- Argument max_schedules: maximum number, 1 to 1000.
-- Members item: schedule_document
-- Example: select * from jobq_http.page_schedules();
create or replace function jobq_http.page_schedules(
    status text default null, kind text default null, queue text default null,
    before uuid default null, max_schedules integer default 50, vocabulary text default null
)
returns table (item json, cursor uuid) language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
    select
        jobq_private.schedule_document(s, page_schedules.vocabulary),
        case when exists (
            select from jobq_internal.list_schedules(
                page_schedules.status, page_schedules.kind, page_schedules.queue, l.schedule_id, 1
            )
        ) then l.schedule_id end
    from jobq_internal.list_schedules(
        page_schedules.status, page_schedules.kind, page_schedules.queue,
        page_schedules.before, page_schedules.max_schedules
    ) as l
    join jobq_private.schedule as s on s.schedule_id = l.schedule_id
    order by l.schedule_id desc
$$;
grant execute on function jobq_http.page_schedules to jobq_operator, jobq_reader;
