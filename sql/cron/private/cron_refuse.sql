-- Purpose: refuse a part of a cron expression, saying what its field may hold.
-- Invariant: always raises; no SET, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_refuse(field text, part text)
returns void
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _allowed text := case field
        when 'hour' then '0-23'
        when 'day-of-month' then '1-31, ?, L, L-3 (days before the last), 15W, LW'
        when 'month' then '1-12 or JAN-DEC'
        when 'day-of-week' then
            '0-7 (0 and 7 are Sunday) or SUN-SAT, ?, 5L (the last), 5#2 (the second)'
        when 'year' then '1970-2199'
        else '0-59'
    end;
begin
    perform jobq_private.raise_error('INVALID_CRON', pg_catalog.format(
        '%s: "%s" is refused; the field may hold %s, and *, lists, ranges and steps',
        field, pg_catalog.left(part, 40), _allowed
    ));
end
$$;

revoke all on function jobq_private.cron_refuse from public;

comment on function jobq_private.cron_refuse is
'Refuses a part of a cron expression that its field may not hold.';
