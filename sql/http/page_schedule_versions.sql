-- Purpose: Returns a page of the versions of a schedule as JSON documents, newest first.
-- Invariant: reads only. Raises: 22004, 22023, JQ007.
-- Argument before: only versions before this number; null for the first page.
-- Argument max_versions: maximum number, 1 to 1000.
-- Members item: schedule_document
-- Example: select * from jobq_http.page_schedule_versions('weekly summary');
create or replace function jobq_http.page_schedule_versions(
    schedule text, before integer default null, max_versions integer default 50
)
returns table (item json, cursor integer) language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
    select jobq_private.check_count('max_versions', page_schedule_versions.max_versions, 1, 1000);
    select jobq_private.schedule_document(s), case when s.version > 1 then s.version end
    from jobq_private.schedule_find(page_schedule_versions.schedule) as f
    join jobq_private.schedule as s on s.name = f.name
    where s.version < coalesce(page_schedule_versions.before, 2147483647)
    order by s.version desc
    limit page_schedule_versions.max_versions
$$;
grant execute on function jobq_http.page_schedule_versions
to jobq_producer, jobq_operator, jobq_reader;
