-- Purpose: the first local time at or after a given one that matches a cron expression.
-- Invariant: pure; searches month by month. A weekday on a day of the year can be up to
-- forty years away (29 February across 2100); all years of a list are tried. No SET,
-- because it is called often; all names are qualified.
create or replace function jobq_private.cron_next_local(
    cron jobq_private.cron, start timestamp
)
returns timestamp
language plpgsql
immutable
parallel safe
as $$
declare
    _time time := jobq_private.cron_time(cron, start::time);
    _year integer := pg_catalog.date_part('year', start)::int;
    _month integer := pg_catalog.date_part('month', start)::int;
    _day integer := pg_catalog.date_part('day', start)::int
        - case when _time is null then 0 else 1 end;
    _last_year integer := case when cron.years is null then _year + 40 else 2199 end;
    _next integer;
begin
    while _year <= _last_year loop
        _next := jobq_private.cron_first(cron.months, _month);
        if _next is null or _year <> all (cron.years) then
            _year := case
                when cron.years is null then _year + 1
                else (select min(y.year) from unnest(cron.years) as y (year)
                    where y.year > _year)
            end;
            _month := 1;
            _day := 0;
            continue;
        elsif _next > _month then
            _month := _next;
            _day := 0;
        end if;
        _day := jobq_private.cron_first(
            jobq_private.cron_days(cron, _year, _month), _day
        );
        if _day is not null then
            return pg_catalog.make_date(_year, _month, _day + 1) + case
                when pg_catalog.make_date(_year, _month, _day + 1) = start::date
                then _time
                else jobq_private.cron_time(cron, time '00:00')
            end;
        end if;
        _month := _month + 1;
        _day := 0;
    end loop;
    return null;
end
$$;

comment on function jobq_private.cron_next_local is
'Returns the first clock reading at or after start that an expression names, or'
' null.';
