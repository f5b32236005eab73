-- What jobq.pause_schedule(), resume_schedule() and retire_schedule() promise.
begin;
select plan(26);

-- Half a day away, so that it does not come while the test runs.
select to_char((now() + interval '12 h') at time zone 'UTC', 'FMMI FMHH24 * * *') as daily
\gset
select jobq.create_schedule('nightly', 'k', :'daily') as nightly \gset
select jobq.create_schedule('beat', 'k', every => '10 min') as beat \gset
update jobq_private.schedule set next_run_at = now() - interval '25 min';
select jobq.pause_schedule(s, 'holiday') from unnest(array['nightly', :'beat']) as s;
select results_eq(
    $$ select s.name, s.paused_at, s.pause_reason from jobq_internal.list_schedules('paused') as s
    order by s.name $$,
    $$ values ('beat', now(), 'holiday'), ('nightly', now(), 'holiday') $$,
    'it says since when, and why'
);
select is((select count(*) from jobq_internal.tick()), 0::bigint, 'a paused schedule does not fire');
select jobq.pause_schedule('nightly', 'another reason');
select is(
    (jobq_internal.get_schedule('nightly')).pause_reason, 'holiday', 'pausing it again changes nothing'
);
select jobq.resume_schedule(s) from unnest(array['nightly', 'beat']) as s;
select results_eq(
    $$ select s.name, s.paused_at, s.pause_reason from jobq_internal.list_schedules('active') as s
    order by s.name $$,
    $$ values ('beat', null::timestamptz, null::text), ('nightly', null, null) $$,
    'resuming undoes it'
);
select is(
    (jobq_internal.get_schedule('nightly')).next_run_at, jobq.next_tick(:'daily'),
    'slots that came while it was paused are not made up for'
);
select is(
    (jobq_internal.get_schedule('beat')).next_run_at, now() + interval '5 min',
    'a fixed rate keeps its beat'
);
select jobq.resume_schedule('beat');
select is(
    (jobq_internal.get_schedule('beat')).next_run_at, now() + interval '5 min',
    'resuming it again changes nothing'
);

-- One that counts from completion
select jobq.create_schedule('after', 'k2', every => '1 h', from_completion => true) as after \gset
update jobq_private.schedule set next_run_at = now() where schedule_id = :'after';
select job_id as job from jobq_internal.tick() \gset
select jobq.pause_schedule('after');
select jobq.cancel(:'job');
select jobq_internal.tick();
select is(
    (jobq_internal.get_schedule('after')).awaited_job_id, :'job'::uuid,
    'while it is paused it does not look for the job''s end'
);
select jobq.resume_schedule('after');
select jobq_internal.tick();
select ok(
    (jobq_internal.get_schedule('after')).next_run_at > now() + interval '59 min',
    'afterwards it counts from there'
);
select jobq.create_schedule('long', 'k3', every => '1 h', from_completion => true) as long \gset
update jobq_private.schedule set next_run_at = now() - interval '5 h' where schedule_id = :'long';
select job_id as job from jobq_internal.tick() \gset
select jobq.pause_schedule('long');
select jobq.cancel(:'job');
set local session_replication_role = replica;
update jobq_private.job_archive
set job_id = jobq_private.id_floor(now() - interval '5 h'), finished_at = now() - interval '150 min'
where job_id = :'job';
update jobq_private.schedule set awaited_job_id = jobq_private.id_floor(now() - interval '5 h')
where schedule_id = :'long';
set local session_replication_role = origin;
select jobq.resume_schedule('long');
select jobq_internal.tick();
select is(
    (jobq_internal.get_schedule('long')).next_run_at, now() + interval '30 min',
    'if the job ended long ago, the slots during the pause do not fire either'
);
select jobq.create_schedule(
    'grid', 'k4', every => '1 h', from_completion => true, starts_at => now() - interval '50 min'
) as grid \gset
update jobq_private.schedule set next_run_at = now() where schedule_id = :'grid';
select job_id as job from jobq_internal.tick() \gset
select jobq.pause_schedule('grid');
select jobq.cancel(:'job');
select jobq.resume_schedule('grid');
select ok(
    (jobq_internal.get_schedule('grid')).next_run_at > now() + interval '59 min',
    'nor does a slot that counts from starts_at come before'
);

-- Retire
update jobq_private.schedule set next_run_at = now() - interval '1 day'
where schedule_id = :'nightly';
select job_id as waiting from jobq_internal.tick() limit 1 \gset
update jobq_private.schedule set next_run_at = now() where schedule_id = :'beat';
select job_id as running from jobq_internal.tick() \gset
select from jobq.claim_job(:'running', 'w');
select jobq.retire_schedule(s) from unnest(array['nightly', :'beat']) as s;
select results_eq(
    format(
        $$ select s.status, s.next_run_at, s.retired_at, s.replaced_by_id
        from jobq.schedule as s where s.schedule_id in (%L, %L) $$, :'nightly', :'beat'
    ),
    $$ values ('retired' collate "C", null::timestamptz, now(), null::uuid),
    ('retired', null, now(), null) $$,
    'a retired schedule fires no more'
);
select is((jobq.get_job(:'running')).state, 'running', 'its job that runs goes on');
select is((jobq.get_job(:'waiting')).state, 'queued', 'and so does the one that waits');
select is(jobq.complete(:'running', 1), true, 'which can be finished');
select is((jobq_internal.get_schedule('nightly')).schedule_id, :'nightly', 'it can be looked up by name');
select is_empty(
    $$ select from jobq_internal.list_schedules() as s where s.name in ('nightly', 'beat') $$,
    'it is no longer among those in force'
);
select lives_ok($$ select jobq.retire_schedule('nightly') $$, 'retiring it again does nothing');

-- Refusals
select is(refusal(a.statement), a.code, format('%s: %s', a.statement, a.code))
from (
    values
    ('select jobq.pause_schedule(null)', '22004 NULL_ARGUMENT'),
    ('select jobq.pause_schedule(''nobody'')', 'JQ007 SCHEDULE_NOT_FOUND'),
    ('select jobq.pause_schedule(''nightly'')', 'JQ002 SCHEDULE_RETIRED'),
    ('select jobq.resume_schedule(null)', '22004 NULL_ARGUMENT'),
    ('select jobq.resume_schedule(''nobody'')', 'JQ007 SCHEDULE_NOT_FOUND'),
    ('select jobq.resume_schedule(''nightly'')', 'JQ002 SCHEDULE_RETIRED'),
    ('select jobq.retire_schedule(null)', '22004 NULL_ARGUMENT'),
    ('select jobq.retire_schedule(''nobody'')', 'JQ007 SCHEDULE_NOT_FOUND')
) as a (statement, code);

select * from finish();
rollback;
