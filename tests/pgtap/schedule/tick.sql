-- What jobq_internal.tick() promises: each slot once, missed ones by policy, overlap by strategy.
begin;
select plan(69);

-- Sets the slot that a schedule has next, as if nobody had ticked since.
create function pg_temp.make_due(name text, at timestamptz)
returns void
language sql
as $$
    update jobq_private.schedule as s set next_run_at = make_due.at
    where s.name = make_due.name and s.status <> 'retired'
$$;
create function pg_temp.slots(name text)
returns setof timestamptz
language sql
as $$
    select j.slot_at from jobq.job as j
    join jobq.schedule as s on s.schedule_id = j.schedule_id
    where s.name = slots.name
    order by j.slot_at
$$;

-- An hourly calendar that is half an hour away from its slots, so that no hour turns
-- while the test runs; and the last of its slots.
create function pg_temp.hourly()
returns text
language sql
as $$ select to_char((now() + interval '30 min') at time zone 'UTC', 'FMMI * * * *') $$;
create function pg_temp.slot()
returns timestamptz
language sql
as $$ select date_trunc('minute', now()) - interval '30 min' $$;

-- One slot
select jobq.create_schedule(
    'report', 'make_report', pg_temp.hourly(), payload => '{"a": 1}', queue => 'reports',
    priority => 7, max_attempts => 2, timeout => '3 s', metadata => '{"b": 2}'
) as report \gset
select is_empty('select * from jobq_internal.tick()', 'what is not due does not fire');
select pg_temp.make_due('report', pg_temp.slot());
select schedule_id as fired, slot_at as slot, job_id as job, created from jobq_internal.tick() \gset
select is(:'fired'::uuid, :'report'::uuid, 'what is due fires');
select is(:'slot'::timestamptz, pg_temp.slot(), 'for its slot');
select results_eq(
    $$
    select j.kind, j.payload, j.queue, j.priority, j.max_attempts, j.timeout, j.metadata,
        j.run_at, j.slot_at, j.schedule_id, j.state, j.dedup_key
    from jobq.job as j
    $$,
    format(
        $$
        values ('make_report', '{"a": 1}'::jsonb, 'reports', 7::smallint, 2,
            '3 s'::interval, '{"b": 2}'::jsonb, pg_temp.slot(),
            pg_temp.slot(), %L::uuid, 'queued' collate "C", null::text)
        $$, :'report'
    ),
    'its job is as it was declared, and runs at the slot''s time'
);
select is(
    (jobq.get_job(:'job')).idempotency_key,
    format('job_%s_%s', :'report', extract(epoch from pg_temp.slot())::bigint * 1000),
    'its key names the schedule and the slot in milliseconds'
);
select results_eq(
    $$ select s.last_tick_at, s.next_run_at from jobq_internal.get_schedule('report') as s $$,
    $$ values (pg_temp.slot(), pg_temp.slot() + interval '1 hour') $$,
    'the schedule goes on to the next slot'
);
select is_empty('select * from jobq_internal.tick()', 'a slot fires once');

-- Nobody can make a slot fire again, even if its job is long forgotten
delete from jobq_private.job;
select is(
    refusal($$
        update jobq_private.schedule set next_run_at = pg_temp.slot()
        where name = 'report'
    $$),
    '23514 schedule_next_run_at_check', 'a schedule never has a slot next that it has fired'
);
select is(
    refusal($$
        update jobq_private.schedule
        set last_tick_at = last_tick_at - interval '1 hour',
            next_run_at = next_run_at - interval '1 hour'
        where name = 'report'
    $$),
    'JQ002 SCHEDULE_IMMUTABLE', 'nor does its last slot go back'
);
select is(
    refusal($$ update jobq_private.schedule set last_tick_at = null $$),
    'JQ002 SCHEDULE_IMMUTABLE', 'or away'
);
select is(
    refusal(format(
        $$
        insert into jobq_private.job (job_id, kind, queue, lease, timeout, max_attempts,
            schedule_id, slot_at)
        select jobq_private.new_id(0), 'k', 'q', '1 s', '1 s', 1, %L, now()
        from generate_series(1, 2)
        $$, :'report'
    )),
    '23505 job_schedule_idx', 'nor are there two live jobs of one slot'
);

-- The ten minutes of an outage, iteration by iteration, at 09:10:30
select jobq.create_schedule('outage', 'k', '* * * * *');
select pg_temp.make_due('outage', '2026-03-16 09:00 UTC');
create temporary table iteration (n integer, slot_at timestamptz, next_run_at timestamptz);
do $$
declare
    _jobs jobq_private.new_job[];
begin
    for _n in 1 .. 12 loop
        _jobs := jobq_private.schedule_advance(1, '2026-03-16 09:10:30 UTC');
        insert into iteration values (
            _n, (_jobs[1]).slot_at, (jobq_internal.get_schedule('outage')).next_run_at
        );
    end loop;
end
$$;
select results_eq(
    'select n, slot_at, next_run_at from iteration order by n',
    $$
    values
    (1, '2026-03-16 09:00 UTC'::timestamptz, '2026-03-16 09:01 UTC'::timestamptz),
    (2, '2026-03-16 09:01 UTC', '2026-03-16 09:02 UTC'),
    (3, '2026-03-16 09:02 UTC', '2026-03-16 09:03 UTC'),
    (4, '2026-03-16 09:03 UTC', '2026-03-16 09:04 UTC'),
    (5, '2026-03-16 09:04 UTC', '2026-03-16 09:05 UTC'),
    (6, '2026-03-16 09:05 UTC', '2026-03-16 09:06 UTC'),
    (7, '2026-03-16 09:06 UTC', '2026-03-16 09:07 UTC'),
    (8, '2026-03-16 09:07 UTC', '2026-03-16 09:08 UTC'),
    (9, '2026-03-16 09:08 UTC', '2026-03-16 09:09 UTC'),
    (10, '2026-03-16 09:09 UTC', '2026-03-16 09:10 UTC'),
    (11, '2026-03-16 09:10 UTC', '2026-03-16 09:11 UTC'),
    (12, null, '2026-03-16 09:11 UTC')
    $$,
    'after ten minutes eleven iterations fire a slot each, and the twelfth none'
);
select jobq.retire_schedule('outage');
select jobq.create_schedule('behind', 'k', pg_temp.hourly());
select pg_temp.make_due('behind', pg_temp.slot() - interval '10 hours');
select is((select count(*) from jobq_internal.tick(5)), 5::bigint, 'a call fires a bounded number');
select is((select count(*) from jobq_internal.tick(100)), 6::bigint, 'and the next one goes on');

-- The bound is shared, earliest first
select jobq.create_schedule('old', 'k', pg_temp.hourly());
select jobq.create_schedule('young', 'k', pg_temp.hourly());
select pg_temp.make_due('old', pg_temp.slot() - interval '9 days');
select pg_temp.make_due('young', pg_temp.slot() - interval '2 days');
select is((select s.name from jobq_internal.tick(1) as t join jobq.schedule as s using (schedule_id)),
    'old', 'the one that is due the longest comes first');
select results_eq(
    $$
    select s.name, count(*) from jobq_internal.tick(20) as t join jobq.schedule as s using (schedule_id)
    group by s.name order by s.name
    $$,
    $$ values ('old', 10::bigint), ('young', 10) $$, 'no schedule takes all of a call'
);
select jobq.retire_schedule(s) from unnest(array['old', 'young']) as s;

-- What was missed
select jobq.create_schedule('all', 'k', every => '1 h', missed => 'all', dedup => 'enqueue',
    catch_up => '5 h 30 min');
select jobq.create_schedule('latest', 'k', pg_temp.hourly(), missed => 'latest');
select jobq.create_schedule('none', 'k', pg_temp.hourly(), missed => 'none');
select jobq.create_schedule('fresh', 'k', every => '1 h', missed => 'none', dedup => 'enqueue');
select jobq.create_schedule('stale', 'k', every => '1 h', dedup => 'enqueue', catch_up => '20 s');
select pg_temp.make_due(m.name, m.due_at)
from (
    values
    ('all', now() - interval '7 days'),
    ('latest', '2020-01-01 00:00 UTC'),
    ('none', '2020-01-01 00:00 UTC'),
    ('fresh', now() - interval '5 h 5 s'),
    ('stale', now() - interval '5 h 30 s')
) as m (name, due_at);
select count(*) from jobq_internal.tick() \gset
select is(
    array(select pg_temp.slots('all')),
    array(select now() - n * interval '1 h' from generate_series(5, 0, -1) as n),
    'all makes up for what lies within the catch-up window'
);
select is(
    array(select pg_temp.slots('latest')), array[pg_temp.slot()],
    'latest fires the latest slot alone, however many years were missed'
);
select is_empty($$ select pg_temp.slots('none') $$, 'none drops what is past its minute');
select is(
    array(select pg_temp.slots('fresh')), array[now() - interval '5 s'],
    'none fires a slot that is no more than a minute late'
);
select is_empty(
    $$ select pg_temp.slots('stale') $$, 'latest drops what is past its catch-up window'
);
select ok(
    (jobq_internal.get_schedule(s)).next_run_at > clock_timestamp(), s || ' goes on with the next slot'
)
from unnest(array['all', 'latest', 'none', 'fresh', 'stale']) as s;
select is(
    (jobq_internal.get_schedule('none')).last_tick_at, null, 'a slot that did not fire is not the last'
);

-- Intervals
select jobq.create_schedule('beat', 'k', every => '7 min', missed => 'all', dedup => 'enqueue');
select jobq.create_schedule('last beat', 'k', every => '7 min');
select pg_temp.make_due(s, now() - interval '30 min') from unnest(array['beat', 'last beat']) as s;
select jobq_internal.tick();
select is(
    (array(select pg_temp.slots('beat')))[1 : 5],
    array(select now() - interval '30 min' + n * interval '7 min' from generate_series(0, 4) as n),
    'a fixed rate keeps its beat'
);
select is(
    array(select pg_temp.slots('last beat')), array[now() - interval '2 min'],
    'its latest slot is on the beat'
);
select is(
    (jobq_internal.get_schedule('last beat')).next_run_at, now() + interval '5 min', 'and so is the next'
);

-- Bounds
select jobq.create_schedule('ending', 'k', every => '1 h', missed => 'all', dedup => 'enqueue',
    ends_at => now() + interval '1 day');
update jobq_private.schedule set next_run_at = now() - interval '3 hours' where name = 'ending';
alter table jobq_private.schedule disable trigger schedule_version;
update jobq_private.schedule set ends_at = now() - interval '1 hour' where name = 'ending';
select jobq_internal.tick();
select is(
    array(select pg_temp.slots('ending')),
    array[now() - interval '3 hours', now() - interval '2 hours'],
    'slots before ends_at fire, even late, and the one at ends_at does not'
);
select results_eq(
    $$ select s.status, s.next_run_at from jobq_internal.get_schedule('ending') as s $$,
    $$ values ('active' collate "C", null::timestamptz) $$, 'then no slot is left'
);

-- Jitter
select jobq.create_schedule('spread', 'k', pg_temp.hourly(), jitter => '1 h');
select pg_temp.make_due('spread', pg_temp.slot() - interval '99 h');
select jobq_internal.tick();
select ok(
    bool_and(j.run_at >= j.slot_at and j.run_at <= j.slot_at + interval '1 h')
    and count(distinct j.run_at - j.slot_at) > 90 and max(j.run_at - j.slot_at) > '30 min',
    'jitter spreads the runs after their slots, never before'
)
from jobq.job as j
join jobq.schedule as s using (schedule_id)
where s.name = 'spread';

-- Overlap
select jobq.create_schedule('skip', 'o', pg_temp.hourly(), dedup => 'skip');
select jobq.create_schedule('replace', 'o', pg_temp.hourly(), dedup => 'replace');
select jobq.create_schedule('enqueue', 'o', pg_temp.hourly());
select pg_temp.make_due(s, pg_temp.slot() - interval '2 h')
from unnest(array['skip', 'replace', 'enqueue']) as s;
create temporary table fired as
select s.name, t.* from jobq_internal.tick() as t join jobq.schedule as s using (schedule_id);
select results_eq(
    $$ select f.created from fired as f where f.name = 'skip' order by f.slot_at $$,
    'values (true), (false), (false)', 'skip drops a slot while a job before it lives'
);
select is(
    (select count(distinct f.job_id) from fired as f where f.name = 'skip'), 1::bigint,
    'and tells which job stands for it'
);
select results_eq(
    $$
    select f.created, (jobq.get_job(f.job_id)).state from fired as f
    where f.name = 'replace' order by f.slot_at
    $$,
    $$ values (true, 'cancelled' collate "C"), (true, 'cancelled'), (true, 'queued') $$,
    'replace cancels the job that waits'
);
select results_eq(
    $$
    select f.created, (jobq.get_job(f.job_id)).state from fired as f
    where f.name = 'enqueue' order by f.slot_at
    $$,
    $$ values (true, 'queued' collate "C"), (true, 'queued'), (true, 'queued') $$,
    'enqueue lets them overlap'
);
select jobq.retire_schedule(s) from unnest(array['skip', 'replace', 'enqueue']) as s;

-- Checks were made when it was declared, and are not repeated
select jobq.create_schedule(
    'promised', 'strict', pg_temp.hourly(), payload => '{"tokens": -1}', queue => 'tight'
);
select jobq.put_kind(
    'strict', payload_schema => '{"type": "object", "required": ["to"]}', cost => '{tokens}'
);
select jobq.put_queue('tight', max_depth => 1);
select jobq.enqueue('k', queue => 'tight');
select pg_temp.make_due('promised', pg_temp.slot());
select is(
    (select count(*) from jobq_internal.tick() as t join jobq.schedule as s using (schedule_id)
    where s.name = 'promised'), 1::bigint,
    'a stricter schema or a full queue does not lose the slot'
);

-- A zone that the server no longer knows
select jobq.create_schedule('lost', 'k', pg_temp.hourly(), time_zone => 'Europe/Berlin');
select jobq.create_schedule('found', 'k', pg_temp.hourly(), time_zone => 'Europe/Berlin');
update jobq_private.schedule set time_zone = 'Mars/Base', parsed.time_zone = 'Mars/Base' where name = 'lost';
select pg_temp.make_due(s, pg_temp.slot()) from unnest(array['lost', 'found']) as s;
select results_eq(
    $$ select s.name from jobq_internal.tick() as t join jobq.schedule as s using (schedule_id)
    where s.name in ('lost', 'found') $$,
    $$ values ('found') $$, 'a zone that is gone does not hold up other schedules'
);
select results_eq(
    $$ select s.status, s.pause_reason from jobq_internal.get_schedule('lost') as s $$,
    $$ values ('paused' collate "C", 'time zone "Mars/Base" not recognized') $$,
    'it pauses its own, and says why'
);
select is(
    refusal($$ select jobq.resume_schedule('lost') $$), 'JQ009 INVALID_TIME_ZONE',
    'which cannot be resumed while it is gone'
);
select is(
    jobq_http.show_schedule('lost') ->> 'timezone', 'Mars/Base', 'but can be looked at'
);
select isnt(
    jobq.update_schedule('lost', '{"time_zone": "UTC"}'), null, 'and be given another'
);
alter table jobq_private.schedule enable trigger schedule_version;

-- Interval from completion
select jobq.create_schedule('after', 'slow', every => '10 min', from_completion => true);
select pg_temp.make_due('after', now() - interval '1 hour');
select job_id as first from jobq_internal.tick() as t join jobq.schedule as s using (schedule_id)
where s.name = 'after' \gset
select results_eq(
    $$ select s.next_run_at, s.awaited_job_id from jobq_internal.get_schedule('after') as s $$,
    format('values (null::timestamptz, %L::uuid)', :'first'),
    'one that counts from completion has no next slot while its job lives'
);
select is(
    (jobq.get_job(:'first')).slot_at, now() - interval '1 hour',
    'its slot fires once, however late'
);
select is_empty('select * from jobq_internal.tick()', 'and waits');
select from jobq.claim_job(:'first', 'w');
select jobq.fail(:'first', 1, 'broken', retryable => true);
select jobq_internal.tick();
select is(
    (jobq_internal.get_schedule('after')).awaited_job_id, :'first'::uuid,
    'a job that will be retried has not ended'
);
update jobq_private.job set run_at = now() where job_id = :'first';
select from jobq.claim_job(:'first', 'w');
select jobq.complete(:'first', 2);
select jobq_internal.tick();
select is(
    (jobq_internal.get_schedule('after')).next_run_at,
    (jobq.get_job(:'first')).finished_at + interval '10 min',
    'when it has ended the next slot is counted from that moment'
);

-- when its job is in neither table
select jobq.create_schedule('vanished', 'slow2', every => '10 min', from_completion => true);
select pg_temp.make_due('vanished', now());
select jobq_internal.tick();
delete from jobq_private.job
where job_id = (jobq_internal.get_schedule('vanished')).awaited_job_id;
select jobq_internal.tick();
select is(
    (jobq_internal.get_schedule('vanished')).next_run_at, now() + interval '10 min',
    'a job that is forgotten has ended'
);

-- when the clock was set back after its slot
select jobq.create_schedule(
    'set back', 'slow4', every => '10 min', from_completion => true, ends_at => now() + interval '10 min 5 s'
);
select pg_temp.make_due('set back', now());
select jobq_internal.tick();
delete from jobq_private.job
where job_id = (jobq_internal.get_schedule('set back')).awaited_job_id;
update jobq_private.schedule set last_tick_at = now() + interval '10 s' where name = 'set back';
select lives_ok('select jobq_internal.tick()', 'a next slot after ends_at does not stop tick()');
select is((jobq_internal.get_schedule('set back')).next_run_at, null, 'and the schedule has ended');

-- when the key is held by a job of somebody else
select jobq.enqueue('slow3', dedup_key => 'held', dedup => 'skip') as held \gset
select jobq.create_schedule('held', 'slow3', every => '10 min', from_completion => true);
select pg_temp.make_due('held', now());
select jobq_internal.tick();
select is(
    (jobq_internal.get_schedule('held')).awaited_job_id, :'held'::uuid,
    'it awaits the job that stands for its slot'
);
select jobq.create_schedule('too late', 'slow4', every => '10 min', from_completion => true,
    missed => 'none');
select pg_temp.make_due('too late', now() - interval '25 min');
select is_empty(
    $$ select from jobq_internal.tick() as t join jobq.schedule as s using (schedule_id)
    where s.name = 'too late' $$, 'one that counts from completion may drop a late slot, too'
);
select is(
    (jobq_internal.get_schedule('too late')).next_run_at, now() + interval '5 min', 'and goes on'
);

-- Rows of versions
select is(refusal(a.statement), a.code, a.claim)
from (
    values
    ($$ update jobq_private.schedule set cron = '@daily' where name = 'report' $$,
        'JQ002 SCHEDULE_IMMUTABLE', 'a version never changes'),
    ($$ update jobq_private.schedule set graph = '{}' where name = 'report' $$,
        'JQ002 SCHEDULE_IMMUTABLE', 'nor does its graph'),
    ($$ update jobq_private.schedule set status = 'active', retired_at = null
        where name = 'old' $$, 'JQ002 SCHEDULE_IMMUTABLE', 'a retired one stays retired'),
    ('select jobq_internal.tick(null)', '22004 NULL_ARGUMENT', 'null is refused'),
    ('select jobq_internal.tick(0)', '22023 INVALID_ARGUMENT', 'zero is refused'),
    ('select jobq_internal.tick(10001)', '22023 INVALID_ARGUMENT', 'more than 10,000 is refused')
) as a (statement, code, claim);
select is(
    (select m.affected from jobq.maintain() as m where m.task = 'ticked'), 0::bigint,
    'maintain() ticks, and counts'
);
select pg_temp.make_due('report', pg_temp.slot() + interval '1 us');
select is(
    (select m.affected from jobq.maintain() as m where m.task = 'ticked'), 1::bigint,
    'what it has fired'
);

-- One that cannot fire holds up no other
select jobq.create_schedule('fine', 'fine', every => '1 h');
select jobq.create_schedule('taken', 'taken', every => '1 h', graph => '{"jobs": [
    {"name": "a", "kind": "leaf"}
]}') as taken \gset
select pg_temp.make_due('fine', now() - interval '1 min');
select pg_temp.make_due('taken', now() - interval '2 min');
insert into jobq_private.job (job_id, kind, queue, lease, timeout, max_attempts, schedule_id, slot_at)
values (jobq_private.new_id(0), 'k', 'q', '1 s', '1 s', 1, :'taken', now() - interval '2 min');
select results_eq(
    'select s.name from jobq_internal.tick() as t join jobq.schedule as s using (schedule_id)',
    $$ values ('fine') $$, 'the others fire'
);
select results_eq(
    $$ select next_run_at, last_tick_at from jobq_internal.get_schedule('taken') $$,
    $$ values (now() - interval '2 min', null::timestamptz) $$, 'what cannot fire keeps its slot'
);
select matches(
    (select h.finding from jobq.health() as h where h.subject = 'schedules' and not h.is_ok),
    '^taken should have fired at .*job_schedule_idx', 'health() says why'
);
select is_empty('select from jobq_internal.tick()', 'it is not tried again at once');
select ok(jobq.maintain_in() between '50 s' and '1 min', 'but a minute later');
delete from jobq_private.job as j where j.schedule_id = :'taken';
update jobq_private.schedule set retry_at = now() where name = 'taken';
select results_eq(
    'select slot_at from jobq_internal.tick()', $$ values (now() - interval '2 min') $$,
    'then it fires for its slot'
);
select is(
    (select count(*) from jobq.job as j where j.kind = 'leaf' and j.slot_at = now() - interval '2 min'),
    1::bigint, 'with its graph, whose jobs tell the slot'
);
select * from finish();
rollback;
