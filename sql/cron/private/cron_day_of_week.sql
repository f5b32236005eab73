-- Purpose: read the day-of-week field of a cron expression into the parsed form.
-- Invariant: pure; a plain weekday is five bits, one in each week of a month, MON#2 is
-- one of the five. No SET, since each expression costs a call, and all names are
-- qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_day_of_week(
    parsed jobq_private.cron, list text
)
returns jobq_private.cron
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _item text;
    _weekday integer;
    _nth integer;
begin
    parsed.weekdays := 0;
    parsed.last_weekdays := 0;
    foreach _item in array pg_catalog.string_to_array(list, ',') loop
        if _item ~ '^[0-9A-Z]+#[1-5]$' then
            _weekday := jobq_private.cron_number(
                'day-of-week', pg_catalog.split_part(_item, '#', 1)
            ) % 7;
            _nth := pg_catalog.right(_item, 1)::int;
            parsed.weekdays := parsed.weekdays
                | (1::bigint << (7 * (_nth - 1) + _weekday));
        elsif _item ~ '^([0-7]|[A-Z]{3})L$' then
            _weekday := jobq_private.cron_number(
                'day-of-week', pg_catalog.rtrim(_item, 'L')
            ) % 7;
            parsed.last_weekdays := parsed.last_weekdays | (1::bigint << _weekday);
        elsif _item = '?' and list = '?' then
            parsed.weekdays := (1::bigint << 35) - 1;
        else
            parsed.weekdays := parsed.weekdays
                | 270549121 * jobq_private.cron_range('day-of-week', _item);
        end if;
    end loop;
    return parsed;
end
$$;

revoke all on function jobq_private.cron_day_of_week from public;

comment on function jobq_private.cron_day_of_week is
'Returns the parsed expression with its day-of-week field filled in from text.';
