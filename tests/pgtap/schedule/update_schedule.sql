-- What jobq.update_schedule() promises: a new version takes over from the old.
begin;
select plan(30);

-- Half an hour away from its slots, so that no hour turns while the test runs.
create function pg_temp.hourly()
returns text
language sql
as $$ select to_char((now() + interval '30 min') at time zone 'UTC', 'FMMI * * * *') $$;

select jobq.create_schedule('report', 'k', pg_temp.hourly(), payload => '{"a": 1}', jitter => '5 s')
as one \gset
select is(jobq.update_schedule('report', '{}'), :'one', 'no change makes no version');
select is(
    jobq.update_schedule('report', '{"payload": {"a": 1.0}, "missed": "all"}'), :'one',
    'nor does what it says already'
);
select jobq.update_schedule('report', '{"payload": {"b": 2}, "priority": 7}') as two \gset
select results_eq(
    $$
    select s.version, s.payload, s.priority, s.cron, s.jitter, s.previous_version_id
    from jobq_internal.get_schedule('report') as s
    $$,
    format(
        $$ values (2, '{"b": 2}'::jsonb, 7, pg_temp.hourly(), '5 s'::interval, %L::uuid) $$,
        :'one'
    ),
    'what it does not name stays'
);
select is((jobq_internal.get_schedule(:'one')).status, 'retired', 'the old version is retired');
select jobq.update_schedule(:'two', '{"jitter": null}') as three \gset
select is(
    (jobq_internal.get_schedule('report')).jitter, '0'::interval,
    'null means the default; the present version may be named by its id'
);

-- Where the new version starts: at the old one's next slot while the timing is the same
update jobq_private.schedule set next_run_at = now() - interval '1 hour'
where schedule_id = :'three';
select jobq.update_schedule('report', '{"payload": {"c": 3}}') as four \gset
select is(
    (jobq_internal.get_schedule('report')).next_run_at, now() - interval '1 hour',
    'slots that are due stay due'
);
select count(*) from jobq_internal.tick() \gset fired_
select results_eq(
    format('select distinct schedule_id from jobq_private.job', ''),
    format('values (%L::uuid)', :'four'), 'and fire as the new version'
);
select (jobq_internal.get_schedule('report')).last_tick_at as tick \gset
select jobq.update_schedule('report', '{"kind": "k2"}');
select is(
    (jobq_internal.get_schedule('report')).last_tick_at, :'tick'::timestamptz,
    'the last slot goes on through the versions'
);
select is((select count(*) from jobq_internal.tick()), 0::bigint, 'so that none fires twice');

-- And by its own calendar when it differs, from the first slot not yet fired
select jobq.create_schedule('hourly', 'k', '0 * * * *') as hourly \gset
update jobq_private.schedule set next_run_at = date_trunc('hour', now()) - interval '2 hours'
where schedule_id = :'hourly';
select jobq.update_schedule('hourly', '{"cron": "*/30 * * * *"}');
select is(
    (jobq_internal.get_schedule('hourly')).next_run_at, date_trunc('hour', now()) - interval '2 hours',
    'a slot that both calendars have is not lost'
);
select jobq.update_schedule('hourly', '{"cron": "15 * * * *"}');
select is(
    (jobq_internal.get_schedule('hourly')).next_run_at,
    date_trunc('hour', now()) - interval '105 minutes',
    'one that only the new calendar has takes the place of the old'
);

-- Cron and interval take each other's place
select jobq.update_schedule('hourly', '{"every": "10 s", "from_completion": true}');
select results_eq(
    $$ select s.cron, s.every, s.from_completion from jobq_internal.get_schedule('hourly') as s $$,
    $$ values (null::text, '10 s'::interval, true) $$, 'every takes cron away'
);
select jobq.update_schedule('hourly', '{"cron": "@daily"}');
select results_eq(
    $$ select s.cron, s.every, s.from_completion from jobq_internal.get_schedule('hourly') as s $$,
    $$ values ('@daily', null::interval, false) $$, 'and cron takes every away'
);

-- A fixed rate keeps its beat when only its bounds change
select jobq.create_schedule('beat', 'k', every => '1 h') as beat \gset
select (jobq_internal.get_schedule('beat')).next_run_at as next \gset
select jobq.update_schedule('beat', '{"ends_at": "2099-01-01T00:00:00Z"}');
select is(
    (jobq_internal.get_schedule('beat')).next_run_at, :'next'::timestamptz,
    'a fixed rate keeps its beat when its end changes'
);
select jobq.update_schedule('beat', '{"ends_at": "2020-01-01T00:00:00Z"}');
select is((jobq_internal.get_schedule('beat')).next_run_at, null, 'an end in the past leaves no slot');
select jobq.update_schedule('beat', '{"ends_at": null}');
select ok(
    (jobq_internal.get_schedule('beat')).next_run_at > now(), 'and without it there is one again'
);

-- One that awaits a job goes on to await it
select jobq.create_schedule('after', 'k3', every => '1 h', from_completion => true) as after \gset
update jobq_private.schedule set next_run_at = now() where schedule_id = :'after';
select job_id as awaited from jobq_internal.tick() where schedule_id = :'after' \gset
select jobq.update_schedule('after', '{"every": "2 h"}');
select is(
    (jobq_internal.get_schedule('after')).awaited_job_id, :'awaited'::uuid,
    'a new version awaits the job that the old one awaited'
);
select is((jobq_internal.get_schedule('after')).next_run_at, null, 'and has no slot before it ends');

-- A pause stays
select jobq.pause_schedule('report', 'holiday');
select jobq.update_schedule('report', '{"payload": {}}');
select results_eq(
    $$ select s.status, s.pause_reason from jobq_internal.get_schedule('report') as s $$,
    $$ values ('paused' collate "C", 'holiday') $$, 'a paused schedule stays paused'
);

-- The clock was set back after the last slot
select jobq.create_schedule('ahead', 'k4', every => '1 h');
update jobq_private.schedule
set last_tick_at = now() + interval '5 h', next_run_at = now() + interval '6 h' where name = 'ahead';
select jobq.update_schedule('ahead', '{"every": "2 h"}');
select is(
    (jobq_internal.get_schedule('ahead')).next_run_at, now() + interval '6 h',
    'a new version continues after the last slot, also if that is in the future'
);
select jobq.retire_schedule('ahead');
select jobq.create_schedule('ahead', 'k4', '*/10 * * * *');
select is(
    (jobq_internal.get_schedule('ahead')).next_run_at,
    jobq.next_tick('*/10 * * * *', after => now() + interval '5 h'),
    'and so does a schedule that is declared again'
);

-- Refusals
select is(refusal(a.statement), a.code, format('%s: %s', a.statement, a.code))
from (
    values
    ('select jobq.update_schedule(null, ''{}'')', '22004 NULL_ARGUMENT'),
    ('select jobq.update_schedule(''report'', null)', '22004 NULL_ARGUMENT'),
    ('select jobq.update_schedule(''report'', ''[]'')', '22023 INVALID_ARGUMENT'),
    ('select jobq.update_schedule(''report'', ''{"name": "x"}'')', '22023 INVALID_ARGUMENT'),
    ('select jobq.update_schedule(''report'', ''{"corn": "x"}'')', '22023 INVALID_ARGUMENT'),
    ('select jobq.update_schedule(''nobody'', ''{}'')', 'JQ007 SCHEDULE_NOT_FOUND'),
    ('select jobq.update_schedule(gen_random_uuid()::text, ''{}'')', 'JQ007 SCHEDULE_NOT_FOUND'),
    ('select jobq.update_schedule(''report'', ''{"cron": "x"}'')', 'JQ009 INVALID_CRON')
) as a (statement, code);
select is(
    refusal(format('select jobq.update_schedule(%L, ''{"priority": 1}'')', :'one')),
    'JQ002 SCHEDULE_RETIRED', 'a retired version cannot be changed'
);

select * from finish();
rollback;
