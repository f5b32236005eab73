-- Purpose: Creates the jobs of due slots, each once even with concurrent callers.
-- Invariant: each slot once, however many callers run concurrently, and none waits for another. A
-- schedule that cannot fire does not stop the others: it keeps its slot, is retried a minute
-- later, and health() reports the reason. The caller must repeat 40001 and 40P01.
-- Inside: schedule_advance() takes the slots.
-- Raises: 22004, 22023. Never: DEDUP_CONFLICT, ENQUEUE_DENIED.
-- Argument max_schedules: maximum number of schedules and of jobs, 1 to 10000.
-- Column job_id: the job of the slot.
-- Column created: false if the overlap rule kept a live job instead.
-- Example: select * from jobq_internal.tick();
create or replace function jobq_internal.tick(max_schedules integer default 1000)
returns table (schedule_id uuid, slot_at timestamptz, job_id uuid, created boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    _until constant timestamptz := clock_timestamp();
    _max integer := tick.max_schedules;
    _ids uuid[] := '{}'::uuid[];
    _n integer := 0;
    _jobs jobq_private.new_job[];
    _detail text;
begin
    perform jobq_private.check_count('max_schedules', tick.max_schedules, 1, 10000);
    perform jobq_private.schedule_follow(tick.max_schedules);
    -- First all schedules at once (_ids[0] is null). If that fails, one by one, so that each
    -- failure is undone by itself. After two seconds the rest is left to the next call.
    loop
        begin
            _jobs := jobq_private.schedule_advance(_max, _until, _ids[_n]);
            return query
            with fired as materialized (
                select f.* from jobq_private.schedule_store(_jobs) as f
            ),
            awaiting as (
                update jobq_private.schedule as s
                set awaited_job_id = f.job_id
                from fired as f
                where s.schedule_id = f.schedule_id and s.from_completion
            )
            select f.* from fired as f;
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
                    where f.schedule_id = _ids[_n] and f.status = 'active'
                    for no key update skip locked
                );
                if _n = 0 then
                    _ids := array(
                        select s.schedule_id
                        from jobq_private.due_schedule as s
                        where s.due_at <= _until
                        order by s.due_at
                        limit tick.max_schedules
                    );
                    _max := greatest(tick.max_schedules / greatest(cardinality(_ids), 1), 1);
                end if;
        end;
        _n := _n + 1;
        exit when _n > cardinality(_ids) or clock_timestamp() > _until + interval '2 s';
    end loop;
end
$$;
grant execute on function jobq_internal.tick to jobq_worker, jobq_operator;
