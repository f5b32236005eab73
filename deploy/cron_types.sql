-- Deploy jobq:cron_types to pg
-- A parsed cron expression: sets of numbers as bits, so that the search for the next firing
-- is a few shifts. jobq_private.cron_parse makes one; years alone may be null.
begin;
set local role jobq_owner;

create type jobq_private.cron as (
    -- bit n: the second, minute, hour or month n
    seconds bigint,
    minutes bigint,
    hours bigint,
    months bigint,
    -- bit n: day n + 1 of the month (15), and the weekday nearest to it (15W)
    days bigint,
    near_days bigint,
    -- bit 30 - n: the n-th day before the last of the month (L, L-3), and its W
    last_days bigint,
    near_last_days bigint,
    -- bit 7 * (n - 1) + w: the n-th weekday w of the month, Sunday being 0; MON sets five
    weekdays bigint,
    -- bit w: the last weekday w of the month
    last_weekdays bigint,
    -- ascending; null for every year
    years integer[],
    -- both day fields are restricted, so that a day which either names will do
    is_either_day boolean,
    -- the second, minute or hour starts with *: it counts time passing, not clock readings
    is_interval boolean
);

comment on type jobq_private.cron is
'A cron expression as jobq_private.cron_parse returns it and jobq_private.cron_next takes it.';

commit;
