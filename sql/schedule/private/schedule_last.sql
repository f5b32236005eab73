-- Purpose: the last slot of a schedule until an instant, given one that is not later.
-- Invariant: its cost does not grow with the number of slots between. Raises: 22023 for
-- a zone that the server no longer knows.
create or replace function jobq_private.schedule_last(
    cron jobq_private.cron,
    every interval,
    time_zone text,
    gap text,
    fold text,
    slot_at timestamptz,
    until timestamptz
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if every is null then
        return coalesce(
            jobq_private.cron_last(cron, time_zone, slot_at, until, gap, fold), slot_at
        );
    end if;
    return slot_at + every * floor(
        extract(epoch from until - slot_at) / extract(epoch from every)
    )::double precision;
end
$$;

revoke all on function jobq_private.schedule_last from public;

comment on function jobq_private.schedule_last is
'Returns the last slot of a schedule until an instant, given one that is not later.';
