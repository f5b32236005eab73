-- Deploy jobq:api/show_schedule to pg
-- Made by sql/snapshot.py from sql/api/show_schedule.sql: edit that.
begin;
set local role jobq_owner;

-- Purpose: a schedule as the HTTP API shows it.
-- Invariant: reads only. Raises: 22004, JQ007.
create or replace function jobq.show_schedule(schedule text)
returns json
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return jobq_private.schedule_document(
        jobq_private.schedule_find(show_schedule.schedule)
    );
end
$$;

revoke all on function jobq.show_schedule(text) from public;
grant execute on function jobq.show_schedule(text)
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.show_schedule(text) is
'Returns a schedule, by name or by the id of a version, as a JSON document.';

commit;
