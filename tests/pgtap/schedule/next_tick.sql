begin;

select plan(212);

set local timezone = 'America/New_York';

-- Attributes

select has_function(
    'jobq', 'next_tick',
    array['text', 'text', 'timestamp with time zone', 'text', 'text'],
    'next_tick takes an expression, a zone, an instant and two rules'
);
select function_returns(
    'jobq', 'next_tick',
    array['text', 'text', 'timestamp with time zone', 'text', 'text'],
    'timestamp with time zone', 'next_tick returns an instant'
);
select is_definer(
    'jobq', 'next_tick',
    array['text', 'text', 'timestamp with time zone', 'text', 'text'],
    'next_tick runs as its owner'
);
select function_privs_are(
    'jobq', 'next_tick',
    array['text', 'text', 'timestamp with time zone', 'text', 'text'],
    r.role, array['EXECUTE'], format('%s may call next_tick', r.role)
)
from unnest(
    '{jobq_producer,jobq_worker,jobq_operator,jobq_reader}'::text[]
) as r (role);

-- The calendar, by the clocks of UTC

create temporary table calendar (
    cron text, after timestamp, expected timestamp, claim text
);

insert into calendar (cron, after, expected, claim) values
    ('* * * * *', '2026-01-01 00:00', '2026-01-01 00:01',
        'a firing is after the instant'),
    ('* * * * *', '2026-01-01 00:00:59.999', '2026-01-01 00:01', 'fractions count'),
    ('*/15 * * * *', '2026-01-01 00:15', '2026-01-01 00:30', 'a step'),
    ('5/20 * * * *', '2026-01-01 00:45', '2026-01-01 01:05', 'a step from a number'),
    ('10-30/10 * * * *', '2026-01-01 00:30', '2026-01-01 01:10', 'a step in a range'),
    ('0,30 9-17 * * *', '2026-01-01 17:30', '2026-01-02 09:00', 'a list and a range'),
    ('50-10/5 * * * *', '2026-01-01 00:10', '2026-01-01 00:50', 'minutes may wrap'),
    ('0 22-2 * * *', '2026-01-01 02:00', '2026-01-01 22:00', 'hours may wrap'),
    ('0 22-2 * * *', '2026-01-01 23:00', '2026-01-02 00:00',
        'hours wrap over midnight'),
    ('0 22-2/2 * * *', '2026-01-01 22:00', '2026-01-02 00:00',
        'a wrapped range steps on'),
    ('0 0 1 NOV-FEB *', '2026-02-01', '2026-11-01', 'months may wrap'),
    ('0 0 * * FRI-MON', '2026-01-05', '2026-01-09', 'weekdays may wrap'),
    ('0 0 30-2 * *', '2026-01-02', '2026-01-30', 'days of the month may wrap'),
    ('0 0 * * 0', '2026-01-01', '2026-01-04', 'weekday 0 is Sunday'),
    ('0 0 * * 7', '2026-01-01', '2026-01-04', 'weekday 7 is Sunday'),
    ('0 0 * * 5-7', '2026-01-03', '2026-01-04', 'a range may end with 7'),
    ('0 0 * * 1', '2026-01-01', '2026-01-05', 'weekday 1 is Monday'),
    ('0 0 * * mon', '2026-01-01', '2026-01-05', 'names in lowercase'),
    ('0 0 1 Jan,jul *', '2026-01-01', '2026-07-01', 'names of months in a list'),
    ('0 0 * * MON-WED,SAT', '2026-01-07', '2026-01-10', 'names in ranges and lists'),
    ('0 0 * * */2', '2026-01-04', '2026-01-06', 'a step of weekdays begins on Sunday'),
    ('0 0 * * 1/2', '2026-01-09', '2026-01-12', 'a step of weekdays ends on Saturday'),
    ('  0  9	*  *  1 ', '2026-01-01', '2026-01-05 09:00',
        'any white space parts fields'),
    ('0 0 13 * FRI', '2026-01-01', '2026-01-02',
        'both days restricted: the weekday will do'),
    ('0 0 13 * FRI', '2026-01-10', '2026-01-13',
        'both days restricted: the date will do'),
    ('0 0 ? * FRI', '2026-01-02', '2026-01-09', '? leaves the other day field alone'),
    ('0 0 13 * ?', '2026-01-01', '2026-01-13', '? in the day of the week'),
    ('0 0 */2 * MON', '2026-01-01', '2026-01-05',
        'a day field that starts with * is joined'
        ' by and'),
    ('0 0 */2 * MON', '2026-01-05', '2026-01-19', 'even Mondays are passed over'),
    ('0 0 L * *', '2026-01-31', '2026-02-28', 'L is the last day'),
    ('0 0 L 2 *', '2028-01-01', '2028-02-29', 'L in a leap year'),
    ('0 0 L-3 * *', '2026-01-01', '2026-01-28', 'L-3 is three days before the last'),
    ('0 0 1,L * *', '2026-01-01', '2026-01-31', 'L in a list'),
    ('0 0 15W * *', '2026-02-01', '2026-02-16', '15W on a Sunday is Monday'),
    ('0 0 15W * *', '2026-08-01', '2026-08-14', '15W on a Saturday is Friday'),
    ('0 0 15W * *', '2026-01-01', '2026-01-15', '15W on a weekday is that day'),
    ('0 0 1W * *', '2026-07-31', '2026-08-03', '1W on a Saturday stays in its month'),
    ('0 0 31W * *', '2026-04-01', '2026-05-29', '31W is only in months with 31 days'),
    ('0 0 LW * *', '2026-01-01', '2026-01-30', 'LW is the last weekday'),
    ('0 0 LW * *', '2026-05-01', '2026-05-29', 'LW on a Sunday goes back to Friday'),
    ('0 0 L-3W * *', '2026-02-01', '2026-02-25', 'L-3W is the weekday nearest to L-3'),
    ('0 0 * * 5L', '2026-01-01', '2026-01-30', '5L is the last Friday'),
    ('0 0 * * FRIL', '2026-02-01', '2026-02-27', 'FRIL is 5L'),
    ('0 0 * * 7L', '2026-01-01', '2026-01-25', '7L is the last Sunday'),
    ('0 0 * * MON#2', '2026-01-01', '2026-01-12', 'MON#2 is the second Monday'),
    ('0 0 * * 1#5', '2026-01-01', '2026-03-30', 'a fifth Monday is not in every month'),
    ('0 0 * * 0#1,7#3', '2026-01-04', '2026-01-18', '# in a list, 7 being Sunday'),
    ('0 0 13 * FRI#2', '2026-01-01', '2026-01-09', '# beside a date: either will do'),
    ('0 0 29 2 *', '2026-01-01', '2028-02-29', '29 February'),
    ('0 0 29 2 *', '2096-03-01', '2104-02-29', '2100 is no leap year'),
    ('0 0 29 2 */7', '2088-03-01', '2128-02-29',
        'forty years to a 29 February on Sunday'),
    ('0 0 31 * *', '2026-03-31', '2026-05-31', 'the 31st is not in every month'),
    ('59 23 31 12 *', '2026-12-31 23:59', '2027-12-31 23:59',
        'the last minute of a year'),
    ('*/10 * * * * *', '2026-01-01 00:00:51', '2026-01-01 00:01',
        'six fields: seconds'),
    ('30 0 9 * * MON', '2026-01-01', '2026-01-05 09:00:30',
        'six fields: seconds first'),
    ('0 0 0 1 1 ? 2030', '2026-01-01', '2030-01-01', 'seven fields: a year'),
    ('0 0 0 1 1 * 2030,2028-2029', '2028-06-01', '2029-01-01', 'a list of years'),
    ('0 0 0 1 1 * */100', '2026-01-01', '2070-01-01', 'years step from 1970'),
    ('0 0 0 1 1 * 2020/5', '2026-01-01', '2030-01-01', 'years step from a number'),
    ('0 0 0 1 1 ? 2025', '2026-01-01', null, 'nothing is left after the last year'),
    ('0 0 0 1 1 ? 2199', '2199-01-01', null, 'nothing is left after 2199'),
    ('0 0 29 2 *', '9998-12-31', null, 'no client could read a time in the year 10000'),
    ('0 0 1 1 *', '2199-01-01', '2200-01-01', 'without a year it goes on'),
    ('@yearly', '2026-01-01', '2027-01-01', '@yearly'),
    ('@annually', '2026-01-01', '2027-01-01', '@annually'),
    ('@monthly', '2026-01-01', '2026-02-01', '@monthly'),
    ('@weekly', '2026-01-01', '2026-01-04', '@weekly is Sunday at 00:00'),
    (' @Daily ', '2026-01-01', '2026-01-02', '@daily in any case'),
    ('@midnight', '2026-01-01 12:00', '2026-01-02', '@midnight'),
    ('@hourly', '2026-01-01', '2026-01-01 01:00', '@hourly');

select is(
    jobq.next_tick(c.cron, 'UTC', c.after at time zone 'UTC'),
    c.expected at time zone 'UTC',
    format('%s: %s', c.cron, c.claim)
)
from calendar as c;

select is(
    jobq.next_tick('0 9 * * MON', 'Asia/Kolkata', '2026-03-15 12:00 UTC'),
    '2026-03-16 09:00 +05:30'::timestamptz,
    'the hour is that of the zone'
);
select is(
    jobq.next_tick('0 9 * * MON', 'asia/kolkata', '2026-03-15 12:00 UTC'),
    '2026-03-16 09:00 +05:30'::timestamptz,
    'a zone may be written in any case'
);
select is(
    jobq.next_tick('* * * * *'),
    date_trunc('minute', now()) + interval '1 minute',
    'zone and instant have defaults: UTC, now'
);

-- Changes of clocks: all firings in three hours, from an hour before each, in UTC

create function pg_temp.firings(
    cron text, time_zone text, change timestamptz, gap text, fold text
)
returns text
language plpgsql
as $$
declare
    _at timestamptz := change - interval '1 hour 1 minute';
    _until constant timestamptz := _at + interval '3 hours';
    _last timestamptz;
    _found text[] := '{}';
begin
    loop
        _last := _at;
        _at := jobq.next_tick(cron, time_zone, _at, gap, fold);
        exit when _at > _until;
        if _at <= _last then
            return 'not increasing';
        end if;
        _found := _found || to_char(_at at time zone 'UTC', 'HH24:MI');
    end loop;
    return array_to_string(_found, ' ');
end
$$;

create temporary table change (
    zone text, change timestamp, cron text, gap text, fold text, expected text
);

insert into change (zone, change, cron, gap, fold, expected) values
    -- 02:00 -05 to 03:00 -04
    ('America/New_York', '2026-03-08 07:00', '30 2 * * *', 'auto', 'auto', '07:00'),
    ('America/New_York', '2026-03-08 07:00', '30 2 * * *', 'run', 'auto', '07:00'),
    ('America/New_York', '2026-03-08 07:00', '30 2 * * *', 'skip', 'auto', ''),
    ('America/New_York', '2026-03-08 07:00', '0,30 2,3 * * *', 'auto', 'auto',
        '07:00 07:30'),
    ('America/New_York', '2026-03-08 07:00', '30 * * * *', 'auto', 'auto',
        '06:30 07:30 08:30'),
    ('America/New_York', '2026-03-08 07:00', '30 * * * *', 'run', 'auto',
        '06:30 07:00 07:30 08:30'),
    ('America/New_York', '2026-03-08 07:00', '*/30 * * * *', 'auto', 'auto',
        '06:00 06:30 07:00 07:30 08:00 08:30'),
    ('America/New_York', '2026-03-08 07:00', '*/30 2 * * *', 'auto', 'auto', ''),
    -- 02:00 -04 to 01:00 -05
    ('America/New_York', '2026-11-01 06:00', '30 1 * * *', 'auto', 'auto', '05:30'),
    ('America/New_York', '2026-11-01 06:00', '30 1 * * *', 'auto', 'once', '05:30'),
    ('America/New_York', '2026-11-01 06:00', '30 1 * * *', 'auto', 'both',
        '05:30 06:30'),
    ('America/New_York', '2026-11-01 06:00', '59 1 * * *', 'auto', 'auto', '05:59'),
    ('America/New_York', '2026-11-01 06:00', '0 1,2 * * *', 'auto', 'auto',
        '05:00 07:00'),
    ('America/New_York', '2026-11-01 06:00', '*/30 * * * *', 'auto', 'auto',
        '05:00 05:30 06:00 06:30 07:00 07:30'),
    ('America/New_York', '2026-11-01 06:00', '*/30 * * * *', 'auto', 'once',
        '05:00 05:30 07:00 07:30'),
    -- 01:00 +00 to 02:00 +01
    ('Europe/London', '2026-03-29 01:00', '30 1 * * *', 'auto', 'auto', '01:00'),
    ('Europe/London', '2026-03-29 01:00', '30 1 * * *', 'skip', 'auto', ''),
    ('Europe/London', '2026-03-29 01:00', '*/30 * * * *', 'auto', 'auto',
        '00:00 00:30 01:00 01:30 02:00 02:30'),
    -- 02:00 +01 to 01:00 +00
    ('Europe/London', '2026-10-25 01:00', '30 1 * * *', 'auto', 'auto', '00:30'),
    ('Europe/London', '2026-10-25 01:00', '30 1 * * *', 'auto', 'both', '00:30 01:30'),
    ('Europe/London', '2026-10-25 01:00', '*/30 * * * *', 'auto', 'auto',
        '00:00 00:30 01:00 01:30 02:00 02:30'),
    -- 02:00 +11 to 01:30 +10:30
    ('Australia/Lord_Howe', '2026-04-04 15:00', '45 1 * * *', 'auto', 'auto', '14:45'),
    ('Australia/Lord_Howe', '2026-04-04 15:00', '45 1 * * *', 'auto', 'both',
        '14:45 15:15'),
    ('Australia/Lord_Howe', '2026-04-04 15:00', '15 1 * * *', 'auto', 'both', '14:15'),
    ('Australia/Lord_Howe', '2026-04-04 15:00', '*/20 * * * *', 'auto', 'auto',
        '14:00 14:20 14:40 15:10 15:30 15:50 16:10 16:30 16:50'),
    -- 02:00 +10:30 to 02:30 +11
    ('Australia/Lord_Howe', '2026-10-03 15:30', '15 2 * * *', 'auto', 'auto', '15:30'),
    ('Australia/Lord_Howe', '2026-10-03 15:30', '15 2 * * *', 'skip', 'auto', ''),
    ('Australia/Lord_Howe', '2026-10-03 15:30', '45 2 * * *', 'skip', 'auto', '15:45'),
    ('Australia/Lord_Howe', '2026-10-03 15:30', '*/20 * * * *', 'auto', 'auto',
        '14:30 14:50 15:10 15:40 16:00 16:20 16:40 17:00 17:20'),
    -- 03:00 +11 to 02:00 +10
    ('Australia/Sydney', '2026-04-04 16:00', '30 2 * * *', 'auto', 'auto', '15:30'),
    ('Australia/Sydney', '2026-04-04 16:00', '30 2 * * *', 'auto', 'both',
        '15:30 16:30'),
    ('Australia/Sydney', '2026-04-04 16:00', '0 * * * *', 'auto', 'auto',
        '15:00 16:00 17:00'),
    -- 02:00 +10 to 03:00 +11
    ('Australia/Sydney', '2026-10-03 16:00', '15,45 2,3 * * *', 'auto', 'auto',
        '16:00 16:15 16:45'),
    ('Australia/Sydney', '2026-10-03 16:00', '15,45 2,3 * * *', 'skip', 'auto',
        '16:15 16:45'),
    -- 00:00 -03 to 23:00 -04 of the day before, and 00:00 -04 to 01:00 -03
    ('America/Santiago', '2023-04-02 03:00', '30 23 * * *', 'auto', 'auto', '02:30'),
    ('America/Santiago', '2023-04-02 03:00', '30 23 * * *', 'auto', 'both',
        '02:30 03:30'),
    ('America/Santiago', '2023-04-02 03:00', '0 0 * * *', 'auto', 'auto', '04:00'),
    ('America/Santiago', '2023-04-02 03:00', '30 23 L * *', 'auto', 'both', ''),
    ('America/Santiago', '2023-09-03 04:00', '0 0 * * *', 'auto', 'auto', '04:00'),
    ('America/Santiago', '2023-09-03 04:00', '0 0 * * *', 'skip', 'auto', ''),
    ('America/Santiago', '2023-09-03 04:00', '0 * * * *', 'auto', 'auto',
        '03:00 04:00 05:00'),
    -- summer time is the rule and ends for Ramadan: 03:00 +01 to 02:00 +00, and back
    ('Africa/Casablanca', '2025-02-23 02:00', '30 2 * * *', 'auto', 'auto', '01:30'),
    ('Africa/Casablanca', '2025-02-23 02:00', '30 2 * * *', 'auto', 'both',
        '01:30 02:30'),
    ('Africa/Casablanca', '2025-04-06 02:00', '30 2 * * *', 'auto', 'auto', '02:00'),
    ('Africa/Casablanca', '2025-04-06 02:00', '30 2 * * *', 'skip', 'auto', ''),
    -- 00:00 +03:30 to 01:00 +04:30, and 00:00 +04:30 to 23:00 +03:30 of the day before
    ('Asia/Tehran', '2022-03-21 20:30', '0 0 * * *', 'auto', 'auto', '20:30'),
    ('Asia/Tehran', '2022-03-21 20:30', '0 0 22 3 *', 'skip', 'auto', ''),
    ('Asia/Tehran', '2022-09-21 19:30', '30 23 * * *', 'auto', 'auto', '19:00'),
    ('Asia/Tehran', '2022-09-21 19:30', '*/30 * * * *', 'auto', 'auto',
        '18:30 19:00 19:30 20:00 20:30 21:00'),
    -- 04:00 -10 to 03:00 -11, and 03:00 -11 to 04:00 -10
    ('Pacific/Apia', '2011-04-02 14:00', '30 3 * * *', 'auto', 'auto', '13:30'),
    ('Pacific/Apia', '2011-04-02 14:00', '30 3 * * *', 'auto', 'both', '13:30 14:30'),
    ('Pacific/Apia', '2011-09-24 14:00', '30 3 * * *', 'auto', 'auto', '14:00'),
    ('Pacific/Apia', '2011-09-24 14:00', '30 3 * * *', 'skip', 'auto', ''),
    -- over the date line: 30 December, from 00:00 -10, was left out
    ('Pacific/Apia', '2011-12-30 10:00', '0 12 * * *', 'auto', 'auto', '10:00'),
    ('Pacific/Apia', '2011-12-30 10:00', '0 12 * * *', 'skip', 'auto', ''),
    ('Pacific/Apia', '2011-12-30 10:00', '0 0 * * *', 'auto', 'auto', '10:00'),
    ('Pacific/Apia', '2011-12-30 10:00', '30 23 * * *', 'auto', 'auto', '09:30 10:00'),
    ('Pacific/Apia', '2011-12-30 10:00', '0 0 30 12 *', 'auto', 'auto', '10:00'),
    ('Pacific/Apia', '2011-12-30 10:00', '0,30 * * * *', 'auto', 'auto',
        '09:00 09:30 10:00 10:30 11:00 11:30'),
    -- no change: 02:30 +05:30
    ('Asia/Kolkata', '2026-03-28 21:30', '30 2 * * *', 'auto', 'auto', '21:00'),
    ('Asia/Kolkata', '2026-10-24 21:30', '30 2 * * *', 'skip', 'both', '21:00');

select is(
    pg_temp.firings(
        c.cron, c.zone, c.change at time zone 'UTC', c.gap, c.fold
    ),
    c.expected,
    format('%s %s: %s, gap %s, fold %s', c.zone, c.change::date, c.cron, c.gap, c.fold)
)
from change as c;

select is(
    jobq.next_tick('0 12 * * *', 'Pacific/Apia', '2011-12-30 10:00 UTC'),
    '2011-12-31 12:00 +14'::timestamptz,
    'the day after the missing one has its own noon'
);
select is(
    jobq.next_tick('30 1 1 11 *', 'America/New_York', '2026-11-01 05:30 UTC', 'auto',
        'both'),
    '2026-11-01 06:30 UTC'::timestamptz,
    'the second pass comes before the firing of the next year'
);
select is(
    jobq.next_tick('0 30 1 1 11 ? 2026', 'America/New_York', '2026-11-01 05:30 UTC',
        'auto',
        'both'),
    '2026-11-01 06:30 UTC'::timestamptz,
    'the second pass is found when no firing follows it'
);
select is(
    jobq.next_tick('30 1 * * *', 'America/New_York', '2026-11-01 06:10 UTC'),
    '2026-11-02 06:30 UTC'::timestamptz,
    'in the second pass of an hour, what ran in the first is past'
);

-- Refusals: the detail begins with the field

create function pg_temp.refusal(cron text, time_zone text default 'UTC')
returns text
language plpgsql
as $$
declare
    _detail text;
begin
    perform jobq.next_tick(cron, time_zone);
    return 'accepted';
exception when sqlstate 'JQ009' then
    get stacked diagnostics _detail = pg_exception_detail;
    return split_part(_detail, ':', 1);
end
$$;

select is(pg_temp.refusal(r.cron), r.field, format('refused: %s', r.cron))
from (
    values
    ('60 * * * * *', 'second'),
    ('? * * * * *', 'second'),
    ('60 * * * *', 'minute'),
    ('-1 * * * *', 'minute'),
    ('*/0 * * * *', 'minute'),
    ('*/90 * * * *', 'minute'),
    ('1,,2 * * * *', 'minute'),
    ('1.5 * * * *', 'minute'),
    ('1-2-3 * * * *', 'minute'),
    ('1/2/3 * * * *', 'minute'),
    ('*5 * * * *', 'minute'),
    ('99999999999 * * * *', 'minute'),
    ('* 24 * * *', 'hour'),
    ('* MON * * *', 'hour'),
    ('* 5- * * *', 'hour'),
    ('* * 0 * *', 'day-of-month'),
    ('* * 32 * *', 'day-of-month'),
    ('* * L-31 * *', 'day-of-month'),
    ('* * 32W * *', 'day-of-month'),
    ('* * W * *', 'day-of-month'),
    ('* * 1,? * *', 'day-of-month'),
    ('* * 1-5W * *', 'day-of-month'),
    ('* * * 0 *', 'month'),
    ('* * * 13 *', 'month'),
    ('* * * FOO *', 'month'),
    ('* * * ? *', 'month'),
    ('* * * * 8', 'day-of-week'),
    ('* * * * MONDAY', 'day-of-week'),
    ('* * * * L', 'day-of-week'),
    ('* * * * 8L', 'day-of-week'),
    ('* * * * MON#0', 'day-of-week'),
    ('* * * * MON#6', 'day-of-week'),
    ('* * * * 9#1', 'day-of-week'),
    ('0 * * * * * 1969', 'year'),
    ('0 * * * * * 2200', 'year'),
    ('0 * * * * * 2030-2026', 'year'),
    ('0 * * * * * ?', 'year'),
    ('0 * * * * * */0', 'year'),
    ('', 'expression'),
    ('* * * *', 'expression'),
    ('* * * * * * * *', 'expression'),
    ('@reboot', 'expression'),
    (repeat('0,', 600) || '0 * * * *', 'expression')
) as r (cron, field);

select throws_ok(
    format('select jobq.next_tick(%L)', r.cron), 'JQ009', null,
    format('never fires: %s', r.cron)
)
from (
    values
    ('0 0 30 2 *'),
    ('0 0 31 2,4,6,9,11 *'),
    ('0 0 L-29 2 *'),
    ('0 0 30W 2 *'),
    ('0 0 0 29 2 ? 2027,2100'),
    ('0 0 */31 * MON#2')
) as r (cron);

select is(
    pg_temp.refusal('* * * * *', r.zone), 'time zone', format('refused zone: "%s"',
        r.zone)
)
from unnest(
    '{Mars/Olympus,UTC+3,+05:30,Nowhere5,PST,CET,Etc/GMT+13,right/UTC,""}'::text[]
) as r (zone);

select throws_ok(r.call, r.code, null, format('%s: %s', r.code, r.call))
from (
    values
    ('select jobq.next_tick(null)', '22004'),
    ('select jobq.next_tick(''* * * * *'', null)', '22004'),
    ('select jobq.next_tick(''* * * * *'', after => null)', '22004'),
    ('select jobq.next_tick(''* * * * *'', gap => null)', '22004'),
    ('select jobq.next_tick(''* * * * *'', fold => null)', '22004'),
    ('select jobq.next_tick(''* * * * *'', gap => ''later'')', '22023'),
    ('select jobq.next_tick(''* * * * *'', fold => ''twice'')', '22023'),
    ('select jobq.next_tick(''* * * * *'', after => ''infinity'')', '22023'),
    ('select jobq.next_tick(''* * * * *'', after => ''-infinity'')', '22023')
) as r (call, code);

select * from finish();
rollback;
