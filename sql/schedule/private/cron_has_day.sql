-- Purpose: whether the day fields of a parsed cron expression name a day.
-- Invariant: pure; ignores the fields of month and year. length is that of the month.
create or replace function jobq_private.cron_has_day(
    cron jobq_private.cron, date date, length integer
)
returns boolean language plpgsql immutable as $$
declare
    _day constant integer := pg_catalog.date_part('day', date);
    _weekday constant integer := pg_catalog.date_part('dow', date);
    _near constant bigint := cron.near_days | (cron.near_last_days >> (31 - length));
    _names_day boolean := ((cron.days | (cron.last_days >> (31 - length))) >> _day) & 1 = 1;
    _names_weekday constant boolean :=
        (cron.weekdays >> ((_day - 1) / 7 * 7 + _weekday)) & 1 = 1
        or (length - _day < 7 and (cron.last_weekdays >> _weekday) & 1 = 1);
    _from integer := _day;
    _to integer := _day;
begin
    if _near <> 0 and _weekday between 1 and 5 then
        -- The days that move to this one: Saturday to Friday and Sunday to Monday, or,
        -- at the end of a month, to the weekday on its other side.
        if _weekday = 1 then
            _from := case when _day = 3 then 1 else greatest(_day - 1, 1) end;
        elsif _weekday = 5 then
            _to := case when _day = length - 2 then length else least(_day + 1, length) end;
        end if;
        _names_day := _names_day
            or (_near >> _from) & ((1::bigint << (_to - _from + 1)) - 1) <> 0;
    end if;
    if cron.is_either_day then
        return _names_day or _names_weekday;
    end if;
    return _names_day and _names_weekday;
end
$$;
