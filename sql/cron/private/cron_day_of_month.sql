-- Purpose: read the day-of-month field of a cron expression into the parsed form.
-- Invariant: pure; no SET, since each expression costs a call, and all names are
-- qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_day_of_month(
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
    _number integer;
begin
    parsed.days := 0;
    parsed.near_days := 0;
    parsed.last_days := 0;
    parsed.near_last_days := 0;
    foreach _item in array pg_catalog.string_to_array(list, ',') loop
        if _item !~ '[?LW]' then
            parsed.days := parsed.days
                | (jobq_private.cron_range('day-of-month', _item) >> 1);
        elsif _item = '?' and list = '?' then
            parsed.days := (1::bigint << 31) - 1;
        elsif _item ~ '^[0-9]{1,2}W$' then
            _number := jobq_private.cron_number(
                'day-of-month', pg_catalog.rtrim(_item, 'W')
            );
            parsed.near_days := parsed.near_days | (1::bigint << (_number - 1));
        elsif _item ~ '^L(-([12]?[0-9]|30))?W?$' then
            _number := ('0' || pg_catalog.translate(_item, '-LW', ''))::int;
            if pg_catalog.right(_item, 1) = 'W' then
                parsed.near_last_days := parsed.near_last_days
                    | (1::bigint << (30 - _number));
            else
                parsed.last_days := parsed.last_days | (1::bigint << (30 - _number));
            end if;
        else
            perform jobq_private.cron_refuse('day-of-month', _item);
        end if;
    end loop;
    return parsed;
end
$$;

revoke all on function jobq_private.cron_day_of_month from public;

comment on function jobq_private.cron_day_of_month is
'Returns the parsed expression with its day-of-month field filled in from text.';
