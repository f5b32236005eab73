-- Purpose: a page of schedules as documents, newest first; cursor as in page_jobs().
-- Invariant: reads only; filters as in list_schedules(). Raises: 22004, 22023.
-- Argument status: only this status; null means active and paused.
-- Argument before: only versions made before this one; null for the first page.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument max_schedules: maximum number, 1 to 1000.
-- Argument vocabulary: as for show_job().
-- Members item: schedule_document
-- Example: select * from jobq_http.page_schedules();
create or replace function jobq_http.page_schedules(
    status text default null,
    kind text default null,
    queue text default null,
    before uuid default null,
    max_schedules integer default 50,
    vocabulary text default null
)
returns table (item json, cursor uuid)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        jobq_private.schedule_document(s, page_schedules.vocabulary),
        case when p.n < count(*) over () then p.schedule_id end
    from (
        select l.schedule_id, row_number() over (order by l.schedule_id desc) as n
        from jobq_internal.list_schedules(
            page_schedules.status, page_schedules.kind, page_schedules.queue,
            page_schedules.before, page_schedules.max_schedules + 1
        ) as l
    ) as p
    join jobq_private.schedule as s on s.schedule_id = p.schedule_id
    order by p.n
    limit page_schedules.max_schedules;
end
$$;

grant execute on function jobq_http.page_schedules to jobq_operator, jobq_reader;

comment on function jobq_http.page_schedules is
'Returns a page of schedules as JSON documents, newest first; cursor continues it.';
