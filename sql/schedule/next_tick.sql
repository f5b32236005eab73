-- Purpose: the first time after an instant at which a cron expression fires, in a time
-- zone.
-- Invariant: reads no table and takes no lock.
-- Raises: 22004, 22023, JQ009.
-- Argument after: the result is strictly later than this time, from 1900 to 9998.
-- Returns: the next time; null if there is none, which requires an expression with a year.
-- Example: select jobq.next_tick('0 9 * * MON', 'Asia/Kolkata');
create or replace function jobq.next_tick(
    cron text,
    time_zone text default 'UTC',
    after timestamptz default now(),
    gap text default 'auto',
    fold text default 'auto'
)
returns timestamptz
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if next_tick.after is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'after');
    elsif next_tick.after not between '1900-01-01 UTC' and '9999-01-01 UTC' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'after is %s; it must be from 1900 to 9998', next_tick.after
        ));
    end if;
    perform jobq_private.cron_check(next_tick.time_zone, next_tick.gap, next_tick.fold);
    return jobq_private.cron_next(
        jobq_private.cron_parse(next_tick.cron),
        next_tick.time_zone,
        next_tick.after,
        next_tick.gap,
        next_tick.fold
    );
end
$$;

grant execute on function jobq.next_tick
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.next_tick is
'Returns the next time of a cron expression after an instant, in a time zone; null if there is none.';
