-- Purpose: the first time of day, at or after a given one, at which a parsed cron
-- expression fires.
-- Invariant: pure; no SET, because it is called often; all names are qualified.
create or replace function jobq_private.cron_time(cron jobq_private.cron, start time)
returns time language plpgsql immutable as $$
declare
    _hour integer := pg_catalog.date_part('hour', start)::int;
    _minute integer := pg_catalog.date_part('minute', start)::int;
    _second integer;
begin
    if cron.hours >> _hour & 1 = 1 then
        if cron.minutes >> _minute & 1 = 1 then
            _second := jobq_private.cron_first(
                cron.seconds, pg_catalog.date_part('second', start)::int
            );
        end if;
        if _second is null then
            _minute := jobq_private.cron_first(cron.minutes, _minute + 1);
        end if;
    else
        _minute := null;
    end if;
    if _minute is null then
        _hour := jobq_private.cron_first(cron.hours, _hour + 1);
        _minute := jobq_private.cron_first(cron.minutes, 0);
    end if;
    return pg_catalog.make_time(
        _hour, _minute, coalesce(_second, jobq_private.cron_first(cron.seconds, 0))
    );
end
$$;
