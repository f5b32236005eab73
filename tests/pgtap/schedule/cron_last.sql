begin;

select plan(6);

select is(
    jobq_private.cron_last(
        jobq_private.cron_parse(c.cron, c.zone), c.after::timestamptz, c.until::timestamptz
    ),
    c.expected::timestamptz,
    c.claim
)
from (
    values
    ('* * * * *', 'UTC', '2026-01-01 09:00 UTC', '2026-01-01 09:10 UTC',
        '2026-01-01 09:10 UTC', 'a firing at the end of the span counts'),
    ('* * * * * *', 'UTC', '2020-01-01 UTC', '2026-01-01 00:00:00.5 UTC',
        '2026-01-01 UTC', 'a firing each second for six years is found at once'),
    ('0 9 * * MON', 'UTC', '2026-01-01 UTC', '2026-02-01 UTC',
        '2026-01-26 09:00 UTC', 'the last of several'),
    ('0 9 * * MON', 'UTC', '2026-01-05 09:00 UTC', '2026-01-12 08:59 UTC',
        null, 'a firing at the start of the span does not count'),
    ('0 0 0 1 1 ? 2026', 'UTC', '2025-01-01 UTC', '2030-01-01 UTC',
        '2026-01-01 UTC', 'an expression that has ended'),
    ('30 1 * * *', 'America/New_York', '2026-10-31 12:00 UTC', '2026-11-01 12:00 UTC',
        '2026-11-01 05:30 UTC', 'an hour that comes twice')
) as c (cron, zone, after, until, expected, claim);

select * from finish();
rollback;
