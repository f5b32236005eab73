-- Purpose: read *, 5, 1-5, 10/15 or 1-5/2 in a field of a cron expression.
-- Invariant: pure; a range may wrap (FRI-MON, 22-2). A step wider than its field is
-- refused: */90 in the minutes would fire each hour, and nobody who writes it means
-- that. No SET, since each item costs a call, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_range(field text, item text)
returns bigint
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _base integer := case when field in ('day-of-month', 'month') then 1 else 0 end;
    _size integer := case field
        when 'hour' then 24
        when 'day-of-month' then 31
        when 'month' then 12
        when 'day-of-week' then 7
        else 60
    end;
    _span text := pg_catalog.split_part(item, '/', 1);
    _step integer := 1;
    _low integer := _base;
    _high integer := _base + _size - 1;
    _bits bigint := 0;
begin
    if item !~ '^([*]|[0-9A-Z]+(-[0-9A-Z]+)?)(/[0-9]{1,4})?$' then
        perform jobq_private.cron_refuse(field, item);
    elsif _span <> item then
        _step := pg_catalog.split_part(item, '/', 2)::int;
    end if;
    if _step not between 1 and _size then
        perform jobq_private.cron_refuse(field, item);
    end if;
    if _span <> '*' then
        _low := jobq_private.cron_number(field, pg_catalog.split_part(_span, '-', 1));
        if pg_catalog.strpos(_span, '-') > 0 then
            _high := jobq_private.cron_number(
                field, pg_catalog.split_part(_span, '-', 2)
            );
        elsif _span = item then
            _high := _low;
        end if;
        _high := _high + case when _high < _low then _size else 0 end;
    end if;
    for _number in _low.._high by _step loop
        _bits := _bits | (1::bigint << ((_number - _base) % _size + _base));
    end loop;
    return _bits;
end
$$;

revoke all on function jobq_private.cron_range from public;

comment on function jobq_private.cron_range is
'Returns the numbers that one item of a list in a cron field names, as bits.';
