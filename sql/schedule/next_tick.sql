-- Purpose: Returns the next time of a cron expression after an instant, in a time zone;
-- null if there is none.
-- Invariant: reads no table and takes no lock. Raises: 22004, 22023, JQ009.
-- Argument after: the result is strictly later than this time, from 1900 to 9998.
-- Returns: the next time; null if there is none, because its years or the year 9998 have passed.
-- Example: select jobq.next_tick('0 9 * * MON', 'Asia/Kolkata');
create or replace function jobq.next_tick(
    cron text, time_zone text default 'UTC', after timestamptz default now(),
    gap text default 'auto', fold text default 'auto'
)
returns timestamptz language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select p.slot_at
    from jobq_internal.preview_cron(
        next_tick.cron, next_tick.time_zone, 1, next_tick.after, next_tick.gap, next_tick.fold
    ) as p
$$;
grant execute on function jobq.next_tick
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
