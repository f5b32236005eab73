-- What wait_for(), emit() and signal() promise.
begin;
select plan(34);

-- An event that comes later.
select jobq.enqueue('work') as job_id \gset
select from jobq.claim_job(:'job_id', 'w');
select results_eq(
    format('select outcome, payload from jobq.wait_for(%L, 1, ''paid:1'', ''1 h'')', :'job_id'),
    $$ values ('waiting', null::jsonb) $$, 'the job is given back until the event comes'
);
select results_eq(
    format('select state collate "default", worker, attempts, run_at > now() + interval ''59 min''
        from jobq.job where job_id = %L', :'job_id'),
    $$ values ('queued', null::text, 0, true) $$,
    'it holds neither worker nor lease nor attempt, and is due at its deadline'
);
select is(
    (select reason || ' ' || (explanation like 'waits for paid:1 since %')
    from jobq.explain(:'job_id') limit 1), 'event true', 'explain() says what it waits for'
);
select ok(jobq.emit('paid:1', '{"euro": 5}'), 'the first emit is the one');
select ok(not jobq.emit('paid:1', '{"euro": 6}'), 'a second one changes nothing');
select is(
    (select run_at <= clock_timestamp() from jobq.job where job_id = :'job_id'), true,
    'the job is due at once'
);
select is_empty(
    format('select from jobq.explain(%L) where reason = ''event''', :'job_id'),
    'and waits for nothing more'
);
select from jobq.claim_job(:'job_id', 'w');
select results_eq(
    format('select outcome, payload from jobq.wait_for(%L, 2, ''paid:1'', ''1 h'')', :'job_id'),
    $$ values ('arrived', '{"euro": 5}'::jsonb) $$, 'and is told what has come'
);
select is(
    (select count(*) from jobq_private.waiter), 0::bigint, 'nobody waits any more'
);

-- An event that came before, and one for this job alone.
select jobq.emit('early', '1');
select results_eq(
    format('select outcome, payload from jobq.wait_for(%L, 2, ''early'')', :'job_id'),
    $$ values ('arrived', '1'::jsonb) $$, 'an event that came early is not lost'
);
select ok(jobq.signal(:'job_id', 'approval', '"yes"'), 'a signal reaches a running job');
select jobq.emit('approval', '"for all"');
select results_eq(
    format('select outcome, payload from jobq.wait_for(%L, 2, ''approval'')', :'job_id'),
    $$ values ('arrived', '"yes"'::jsonb) $$, 'and goes before an event of its name'
);
select jobq.enqueue('work') as other \gset
select from jobq.claim_job(:'other', 'w');
select is(
    (jobq.wait_for(:'other', 1, 'only')).outcome, 'waiting', 'another job waits'
);
select jobq.signal(:'job_id', 'only', '1');
select is(
    (select run_at > now() + interval '1 year' from jobq.job where job_id = :'other'), true,
    'a signal to one job does not wake another; without a timeout a job waits on'
);

-- Time-outs count from the first call.
select is(
    (jobq.wait_for(:'job_id', 2, 'never', '1 h')).outcome, 'waiting', 'nothing comes'
);
update jobq_private.waiter set deadline = now() - interval '1 s' where job_id = :'job_id';
select from jobq.claim_job(:'job_id', 'w');
update jobq_private.job set run_at = now() where job_id = :'job_id';
select from jobq.claim_job(:'job_id', 'w');
select is(
    (jobq.wait_for(:'job_id', 3, 'never', '1 h')).outcome, 'timed_out', 'the time is over'
);
select jobq.emit('never', '1');
select is(
    (jobq.wait_for(:'job_id', 3, 'never', '1 h')).outcome, 'timed_out',
    'what was told once is told again, whatever has come since'
);

-- What cannot be meant.
select is(
    refusal(format('select jobq.wait_for(%s)', format(a.arguments, :'job_id'))),
    a.refusal, format('wait_for(%s): %s', left(a.arguments, 40), a.refusal)
)
from (
    values
    ('%L, 1, ''x''', 'JQ003 LEASE_LOST'),
    ('%L, 3, null', '22004 NULL_ARGUMENT'),
    ('%L, 3, ''''', '22023 INVALID_ARGUMENT'),
    ('%L, 3, repeat(''x'', 257)', '22023 INVALID_ARGUMENT'),
    ('%L, 3, ''x'', ''-1 s''', '22023 INVALID_ARGUMENT'),
    ('''00000000-0000-7000-8000-000000000000'', 1, ''x''', 'JQ001 JOB_NOT_FOUND')
) as a (arguments, refusal);
select is(
    refusal('select jobq.signal(''00000000-0000-7000-8000-000000000000'', ''x'')'),
    'JQ001 JOB_NOT_FOUND', 'an unknown job hears no signal'
);
select jobq.complete(:'job_id', 3);
select is(
    refusal(format('select jobq.signal(%L, ''x'')', :'job_id')),
    'JQ002 ILLEGAL_STATE', 'nor does one that has ended'
);

-- A job that died since an event did not come, and is redriven.
select jobq.enqueue('late') as late \gset
select from jobq.claim_job(:'late', 'w');
select from jobq.wait_for(:'late', 1, 'caught', '0 s');
select is(outcome, 'timed_out', 'an event does not come in time')
from jobq.wait_for(:'late', 1, 'late answer', '0 s');
select from jobq.fail(:'late', 1, 'late', 'EVENT_TIMEOUT', retryable => false);
select jobq.redrive(:'late');
select ok(jobq.signal(:'late', 'late answer', '"yes"'), 'it comes after a redrive');
select from jobq.claim_job(:'late', 'w');
select is(payload, '"yes"', 'for which the job waits anew')
from jobq.wait_for(:'late', 2, 'late answer', '0 s');
select is(outcome, 'timed_out', 'but not for that which it went on from')
from jobq.wait_for(:'late', 2, 'caught', '1 h');
select from jobq.complete(:'late', 2);

-- A job that was cancelled while it waited, and is redriven after the deadline.
select jobq.enqueue('stopped', queue => 'stopped') as stopped \gset
select from jobq.claim_job(:'stopped', 'w');
select outcome from jobq.wait_for(:'stopped', 1, 'go on', '1 hour');
select jobq.cancel(:'stopped');
update jobq_private.waiter set deadline = now() - interval '1 min' where job_id = :'stopped';
select jobq.redrive(:'stopped');
select from jobq.claim_job(:'stopped', 'w');
select is(
    (select w.outcome from jobq.wait_for(:'stopped', 2, 'go on', '1 hour') as w), 'waiting',
    'a redriven job waits for the full time, also if its wait was interrupted'
);
select from jobq.change_many('{"run_at": "now"}', array[:'stopped'::uuid]);
select from jobq.claim_job(:'stopped', 'w');
select outcome from jobq.wait_for(:'stopped', 3, 'sleep:' || :'stopped' || ':1', '1 hour');
select jobq.cancel(:'stopped');
update jobq_private.waiter set deadline = now() - interval '1 min' where job_id = :'stopped';
select jobq.redrive(:'stopped');
select from jobq.claim_job(:'stopped', 'w');
select is(
    (select w.outcome from jobq.wait_for(:'stopped', 4, 'sleep:' || :'stopped' || ':1', '1 hour') as w),
    'timed_out', 'a sleep ends when it would have ended'
);
select jobq.cancel(:'stopped');
select from jobq.confirm_cancel(:'stopped', 4);
delete from jobq_private.waiter where job_id = :'stopped';

-- Retention.
update jobq_private.event set emitted_at = now() - interval '40 days';
update jobq_private.waiter set since = now() - interval '40 days' where job_id = :'other';
insert into jobq_private.event (event, payload, emitted_at)
values ('only', '1', now() - interval '40 days');
select jobq.enqueue('asks later', run_at => now() + interval '1 year') as later \gset
select jobq.signal(:'later', 'told early', '9');
select jobq.signal(:'other', 'told', '9');
update jobq_private.event set emitted_at = now() - interval '40 days';
select jobq.enqueue('deleted') as deleted \gset
select jobq.signal(:'deleted', 'unheard');
update jobq_private.event set emitted_at = now() - interval '40 days';
select from jobq.delete_many(array[:'deleted']::uuid[]);
select jobq_private.prune_workflows(1000);
select results_eq(
    'select event collate "default" from jobq_private.event order by event',
    $$ values ('approval'), ('late answer'), ('only'), ('only'), ('told'), ('told early') $$,
    'old events are forgotten, but for those that somebody waits for, and signals to jobs'
);
select is(
    (select count(*) from jobq_private.waiter), 1::bigint, 'a job that lives waits on'
);
select jobq.cancel(:'other');
select jobq_private.prune_workflows(1000);
select is(
    (select count(*) from jobq_private.waiter), 0::bigint, 'what has ended waits no more'
);

select * from finish();
rollback;
