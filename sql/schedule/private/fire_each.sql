-- Purpose: fire the due schedules one by one, after firing them together has failed.
-- Invariant: a failure is undone by itself; that schedule keeps its slot and is retried
-- a minute later. After two seconds the rest is left to the next call.
-- Never: DEDUP_CONFLICT, ENQUEUE_DENIED.
create or replace function jobq_private.fire_each(max_schedules integer, until timestamptz)
returns table (schedule_id uuid, slot_at timestamptz, job_id uuid, created boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
    _stop_at constant timestamptz := clock_timestamp() + interval '2 s';
    _due uuid[];
    _id uuid;
    _detail text;
begin
    select coalesce(array_agg(d.schedule_id), '{}') into _due
    from (
        select s.schedule_id
        from jobq_private.due_schedule as s
        where s.due_at <= fire_each.until
        order by s.due_at
        limit fire_each.max_schedules
    ) as d;
    foreach _id in array _due loop
        exit when clock_timestamp() > _stop_at;
        begin
            return query
            select *
            from jobq_private.fire_due(
                greatest(fire_each.max_schedules / cardinality(_due), 1), fire_each.until, _id
            );
        exception
            when transaction_rollback then
                raise;
            when others then
                get stacked diagnostics _detail = pg_exception_detail;
                update jobq_private.schedule as s
                set
                    retry_at = clock_timestamp() + interval '1 min',
                    failure = left(concat_ws(': ', sqlerrm, nullif(_detail, '')), 512)
                where s.schedule_id = (
                    select f.schedule_id
                    from jobq_private.schedule as f
                    where f.schedule_id = _id and f.status = 'active'
                    for no key update skip locked
                );
        end;
    end loop;
end
$$;
