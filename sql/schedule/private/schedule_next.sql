-- Purpose: the first slot of a schedule strictly after an instant. An interval counts
-- from anchor, which is any of its slots.
-- Invariant: depends only on the zone database. Intervals are stored in seconds, so
-- their slots depend on no zone; numeric arithmetic, so they do not drift. Raises:
-- 22023 for a zone that the server no longer has.
create or replace function jobq_private.schedule_next(
    cron jobq_private.cron, every interval, anchor timestamptz, after timestamptz
)
returns timestamptz language plpgsql stable as $$
begin
    if every is null then
        return jobq_private.cron_next(cron, after);
    elsif anchor = after then
        return anchor + every;
    end if;
    return anchor + every * (floor(
        extract(epoch from after - anchor) / extract(epoch from every)
    ) + 1)::double precision;
end
$$;
