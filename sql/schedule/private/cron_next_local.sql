-- Purpose: the first local time at or after a given one that matches a cron expression;
-- null if there is none.
-- Invariant: pure; tries each day of the months in the expression. A weekday on a day
-- of the year can be up to forty years away (29 February across 2100); all years of a
-- list are tried. No SET, because it is called often; all names are qualified.
create or replace function jobq_private.cron_next_local(
    cron jobq_private.cron, start timestamp
)
returns timestamp
language plpgsql
immutable
parallel safe
as $$
declare
    _date date := start;
    _from time := start;
    _time time;
    _year integer := pg_catalog.date_part('year', _date);
    _month_end date;
    _last_year constant integer := case when cron.years is null then _year + 40 else 2199 end;
begin
    while _year <= _last_year loop
        if _year <> all(cron.years) then
            _date := pg_catalog.make_date(_year + 1, 1, 1);
        elsif (cron.months >> pg_catalog.date_part('month', _date)::integer) & 1 = 0 then
            _date := jobq_private.next_month(_date);
        else
            _month_end := jobq_private.next_month(_date) - 1;
            while _date <= _month_end loop
                if jobq_private.cron_has_day(
                    cron, _date, pg_catalog.date_part('day', _month_end)::integer
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
