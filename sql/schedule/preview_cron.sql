-- Purpose: Returns the next times of a cron expression, also in local time.
-- Invariant: reads no table. Raises: 22004, 22023, JQ009.
-- Argument after: all times are strictly later than this one, from 1900 to 9998.
-- Example: select * from jobq_internal.preview_cron('30 2 * * *', 'America/New_York', 3);
create or replace function jobq_internal.preview_cron(
    cron text, time_zone text default 'UTC', ticks integer default 5,
    after timestamptz default now(), gap text default 'auto', fold text default 'auto'
)
returns table (slot_at timestamptz, local_time timestamp) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    _parsed jobq_private.cron;
begin
    perform jobq_private.check_count('ticks', ticks, 1, 1000);
    perform jobq_private.check_given('after', num_nulls(after));
    perform jobq_private.check_argument(case
        when after not between '1900-01-01 UTC' and '9999-01-01 UTC'
        then 'after must be from 1900 to 9998'
    end);
    perform jobq_private.cron_check(time_zone, gap, fold);
    _parsed := jobq_private.cron_parse(cron, time_zone, gap, fold);
    slot_at := after;
    for _tick in 1 .. ticks loop
        slot_at := jobq_private.cron_next(_parsed, slot_at);
        exit when slot_at is null;
        local_time := slot_at at time zone time_zone;
        return next;
    end loop;
end
$$;
grant execute on function jobq_internal.preview_cron
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
