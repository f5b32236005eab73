-- Purpose: read one number or name in a field of a cron expression.
-- Invariant: pure; no SET, since each number costs a call, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_number(field text, word text)
returns integer
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _number integer := case
        when word ~ '^[0-9]{1,4}$' then word::int
        when field = 'month' then pg_catalog.array_position(
            '{JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC}'::text[], word
        )
        when field = 'day-of-week' then pg_catalog.array_position(
            '{SUN,MON,TUE,WED,THU,FRI,SAT}'::text[], word
        ) - 1
    end;
    _fits boolean := case field
        when 'second' then _number <= 59
        when 'minute' then _number <= 59
        when 'hour' then _number <= 23
        when 'day-of-month' then _number between 1 and 31
        when 'month' then _number between 1 and 12
        when 'day-of-week' then _number <= 7
        when 'year' then _number between 1970 and 2199
    end;
begin
    if _fits is not true then
        perform jobq_private.cron_refuse(field, word);
    end if;
    return _number;
end
$$;

revoke all on function jobq_private.cron_number from public;

comment on function jobq_private.cron_number is
'Returns the number that a word means in a field of a cron expression.';
