-- Purpose: the first local time at or after a given one that matches a cron expression;
-- null if there is none.
-- Invariant: pure; tries each day of the months in the expression. A weekday on a day
-- of the year can be up to forty years away (29 February across 2100); all years of a
-- list are tried. No SET, because it is called often; all names are qualified.
create or replace function jobq_private.cron_next_local(cron jobq_private.cron, start timestamp)
returns timestamp language plpgsql immutable as $$
declare
    _date date := start;
    _from time := start;
    _time time;
    _year integer := pg_catalog.date_part('year', _date);
    _next_month date;
    -- Clients read times up to the year 9999, in any zone.
    _last_year constant integer := case
        when cron.years is null then least(_year + 40, 9998) else 2199
    end;
begin
    while _year <= _last_year loop
        -- of a timestamp: that of a date would depend on the session's time zone
        _next_month := pg_catalog.date_trunc('month', _date::timestamp) + interval '1 month';
        if _year <> all(cron.years) then
            _date := pg_catalog.make_date(_year + 1, 1, 1);
        elsif (cron.months >> pg_catalog.date_part('month', _date)::integer) & 1 = 0 then
            _date := _next_month;
        else
            while _date < _next_month loop
                if jobq_private.cron_has_day(
                    cron, _date, pg_catalog.date_part('day', _next_month - 1)::integer
                ) then
                    _time := jobq_private.cron_time(cron, _from);
                    if _time is not null then
                        return _date + _time;
                    end if;
                end if;
                _date := _date + 1;
                _from := '00:00';
            end loop;
        end if;
        _from := '00:00';
        _year := pg_catalog.date_part('year', _date);
    end loop;
    return null;
end
$$;
