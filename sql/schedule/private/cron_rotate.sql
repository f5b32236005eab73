-- Purpose: convert weekday bits that count from Sunday into bits that count from
-- another weekday.
-- Invariant: pure; no SET and language sql, so that the planner inlines it. 270549121
-- has a bit at the start of each of five weeks; multiplied by a pattern of seven bits,
-- it repeats the pattern in every week.
create or replace function jobq_private.cron_rotate(weeks bigint, weekday integer)
returns bigint
language sql
immutable
parallel safe
as $$
    select ((weeks >> weekday) & (270549121 * ((1::bigint << (7 - weekday)) - 1)))
        | ((weeks & (270549121 * ((1::bigint << weekday) - 1))) << (7 - weekday))
$$;
