-- What jobq_internal.preview_schedule() and preview_cron() promise.
begin;
select plan(23);

select results_eq(
    $$ select * from jobq_internal.preview_cron('0 9 * * MON', 'Asia/Kolkata', 3,
        after => '2026-03-15 10:00 UTC') $$,
    $$
    values ('2026-03-16 03:30 UTC'::timestamptz, '2026-03-16 09:00'::timestamp),
    ('2026-03-23 03:30 UTC', '2026-03-23 09:00'), ('2026-03-30 03:30 UTC', '2026-03-30 09:00')
    $$,
    'it tells the next firings, and what the clocks of the zone show'
);
select results_eq(
    $$ select * from jobq_internal.preview_cron('30 1 * * *', 'America/New_York', 3,
        after => '2026-11-01 00:00 UTC', fold => 'both') $$,
    $$
    values ('2026-11-01 05:30 UTC'::timestamptz, '2026-11-01 01:30'::timestamp),
    ('2026-11-01 06:30 UTC', '2026-11-01 01:30'), ('2026-11-02 06:30 UTC', '2026-11-02 01:30')
    $$,
    'with the rule for an hour that comes twice'
);
select is(
    (
        select count(*)
        from jobq_internal.preview_cron('0 0 0 1 1 ? 2027-2029', after => '2026-01-01 UTC')
    ),
    3::bigint,
    'no more than there are'
);
select is((select count(*) from jobq_internal.preview_cron('* * * * *')), 5::bigint, 'five if not said');

-- Of a schedule
select jobq.create_schedule('weekly', 'k', '0 9 * * MON', time_zone => 'Asia/Kolkata',
    starts_at => '2099-01-01 UTC', ends_at => '2099-01-20 UTC') as weekly \gset
select results_eq(
    $$ select * from jobq_internal.preview_schedule('weekly') $$,
    $$
    values ('2099-01-05 03:30 UTC'::timestamptz, '2099-01-05 09:00'::timestamp),
    ('2099-01-12 03:30 UTC', '2099-01-12 09:00'), ('2099-01-19 03:30 UTC', '2099-01-19 09:00')
    $$,
    'a schedule is shown within its bounds'
);
select results_eq(
    format('select * from jobq_internal.preview_schedule(%L, 1)', :'weekly'),
    $$ values ('2099-01-05 03:30 UTC'::timestamptz, '2099-01-05 09:00'::timestamp) $$,
    'by its id, too'
);
select jobq.create_schedule('beat', 'k', every => '10 min', starts_at => '2099-01-01 UTC');
select results_eq(
    $$ select p.slot_at from jobq_internal.preview_schedule('beat', 3) as p $$,
    $$ values ('2099-01-01 00:00 UTC'::timestamptz), ('2099-01-01 00:10 UTC'),
    ('2099-01-01 00:20 UTC') $$, 'so is an interval'
);
select results_eq(
    $$ select p.slot_at from jobq_internal.preview_schedule('beat', 20) as p $$,
    $$ select '2099-01-01 UTC'::timestamptz + n * interval '10 min'
    from generate_series(0, 19) as n $$, 'for as many slots as are asked for'
);
select jobq.create_schedule('far', 'k', every => '3660 days', starts_at => '9998-01-01 UTC');
select results_eq(
    $$ select p.slot_at from jobq_internal.preview_schedule('far') as p $$,
    $$ values ('9998-01-01 UTC'::timestamptz) $$, 'but for none that no client could read'
);
create temporary table foreseen as select p.* from jobq_internal.preview_schedule('beat', 2) as p;
alter table jobq_private.schedule disable trigger schedule_version;
update jobq_private.schedule set next_run_at = now() - interval '15 min', starts_at = null
where name = 'beat';
select results_eq(
    $$ select p.slot_at from jobq_internal.preview_schedule('beat', 3) as p $$,
    $$ values (now() - interval '15 min'), (now() - interval '5 min'),
    (now() + interval '5 min') $$, 'what is due is shown'
);
select jobq.pause_schedule('beat');
select results_eq(
    $$ select p.slot_at from jobq_internal.preview_schedule('beat', 2) as p $$,
    $$ values (now() + interval '5 min'), (now() + interval '15 min') $$,
    'a paused schedule is shown as if it were resumed'
);
select jobq.retire_schedule('beat');
select is_empty($$ select * from jobq_internal.preview_schedule('beat') $$, 'a retired one fires no more');
select jobq.create_schedule('after', 'k', every => '10 min', from_completion => true);
select is(
    (select count(*) from jobq_internal.preview_schedule('after')), 1::bigint,
    'of one that counts from completion the next slot alone is known'
);
select is((select count(*) from jobq_private.job), 0::bigint, 'a preview fires nothing');

-- Refusals
select is(refusal(a.statement), a.code, format('%s: %s', a.statement, a.code))
from (
    values
    ('select jobq_internal.preview_cron(null)', '22004 NULL_ARGUMENT'),
    ('select jobq_internal.preview_cron(''@daily'', ticks => null)', '22004 NULL_ARGUMENT'),
    ('select jobq_internal.preview_cron(''@daily'', ticks => 1001)', '22023 INVALID_ARGUMENT'),
    ('select jobq_internal.preview_cron(''@daily'', after => ''infinity'')', '22023 INVALID_ARGUMENT'),
    ('select jobq_internal.preview_cron(''@never'')', 'JQ009 INVALID_CRON'),
    ('select jobq_internal.preview_cron(''@daily'', ''Mars/Base'')', 'JQ009 INVALID_TIME_ZONE'),
    ('select jobq_internal.preview_cron(''@daily'', gap => ''jump'')', '22023 INVALID_ARGUMENT'),
    ('select jobq_internal.preview_schedule(''nobody'')', 'JQ007 SCHEDULE_NOT_FOUND'),
    ('select jobq_internal.preview_schedule(''weekly'', 0)', '22023 INVALID_ARGUMENT')
) as a (statement, code);

select * from finish();
rollback;
