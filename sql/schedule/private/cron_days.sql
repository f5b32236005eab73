-- Purpose: the days of one month on which a parsed cron expression fires.
-- Invariant: pure. No SET, because each searched month costs a call; all names are
-- qualified.
create or replace function jobq_private.cron_days(
    cron jobq_private.cron, year integer, month integer
)
returns bigint
language plpgsql
immutable
parallel safe
as $$
declare
    _first date := pg_catalog.make_date(year, month, 1);
    _length integer :=
        pg_catalog.make_date(year + month / 12, month % 12 + 1, 1) - _first;
    _weekday integer := pg_catalog.date_part('dow', _first)::int;
    _last bigint := 1::bigint << (_length - 1);
    _month bigint := 2 * _last - 1;
    _days bigint := cron.days | (cron.last_days >> (31 - _length));
    _near bigint := cron.near_days | (cron.near_last_days >> (31 - _length));
    _weekdays bigint := jobq_private.cron_rotate(cron.weekdays, _weekday);
    _sundays bigint;
    _saturdays bigint;
begin
    if _near <> 0 then
        -- Saturday moves to Friday, Sunday to Monday, neither into another month
        _near := _near & _month;
        _sundays := _near & jobq_private.cron_rotate(270549121, _weekday);
        _saturdays := _near & jobq_private.cron_rotate(17315143744, _weekday);
        _days := _days
            | (_near & ~_sundays & ~_saturdays)
            | (_saturdays >> 1) | ((_saturdays & 1) << 2)
            | ((_sundays & ~_last) << 1) | ((_sundays & _last) >> 2);
    end if;
    if cron.last_weekdays <> 0 then
        _weekdays := _weekdays | (
            jobq_private.cron_rotate(cron.last_weekdays, (_weekday + _length) % 7)
            << (_length - 7)
        );
    end if;
    if cron.is_either_day then
        return (_days | _weekdays) & _month;
    end if;
    return _days & _weekdays & _month;
end
$$;
