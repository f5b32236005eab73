-- What jobq.cancel() promises; tests/python/test_races.py has the races.
begin;
select plan(19);

select jobq.enqueue('work', dedup_key => 'd') as waiting \gset
select is(
    jobq.cancel(:'waiting', 'unwanted'), 'cancelled',
    'a waiting job is cancelled at once'
);
select results_eq(
    format(
        'select state, previous_state, cancel_reason, attempts,
        finished_at between now() and clock_timestamp()
        from jobq.get_job(%L)', :'waiting'
    ),
    $$ values ('cancelled' collate "C", 'queued' collate "C", 'unwanted', 0, true) $$,
    'it has ended, and says why'
);
select is(jobq.cancel(:'waiting', 'again'), 'already_finished', 'once is enough');
select is(
    (jobq.get_job(:'waiting')).cancel_reason, 'unwanted', 'and the first reason stays'
);
select is(
    jobq.cancel(jobq.enqueue('work', run_at => now() + interval '1 h')), 'cancelled',
    'a job for later can be cancelled too, without a reason'
);

select jobq.enqueue('work') as running \gset
select from jobq.claim_job(:'running', 'w');
select is(
    jobq.cancel(:'running', 'stop'), 'cancel_requested',
    'a running job is asked to stop'
);
select results_eq(
    format(
        'select state, cancel_requested_at, cancel_reason, lease_expires_at > now()
        from jobq.get_job(%L)', :'running'
    ),
    $$ values ('running' collate "C", now(), 'stop', true) $$,
    'and runs on until it sees that'
);
select is(jobq.cancel(:'running', 'now'), 'cancel_requested', 'it may be asked again');
select results_eq(
    format(
        'select cancel_requested_at, cancel_reason from jobq.get_job(%L)', :'running'
    ),
    $$ values (now(), 'stop') $$, 'the first request counts'
);
select jobq.fail(:'running', 1, 'boom');
select is(
    (jobq.get_job(:'running')).state::text, 'cancelled', 'such a job never retries'
);

select jobq.enqueue('work') as retrying \gset
select from jobq.claim_job(:'retrying', 'w');
select jobq.fail(:'retrying', 1, 'boom');
select is(jobq.cancel(:'retrying'), 'cancelled', 'a retrying job is cancelled at once');
select is((jobq.get_job(:'retrying')).last_error, 'boom', 'its last error stays');

select jobq.enqueue('work') as done \gset
select from jobq.claim_job(:'done', 'w');
select jobq.complete(:'done', 1);
select is(
    jobq.cancel(:'done'), 'already_finished', 'a job that succeeded is left alone'
);
select is((jobq.get_job(:'done')).state::text, 'succeeded', 'and has succeeded still');

select is(
    refusal('select jobq.cancel(' || a.arguments || ')'), a.refusal,
    format('cancel(%s): %s', left(a.arguments, 60), a.refusal)
)
from (
    values
    ('null', '22004 NULL_ARGUMENT'),
    ('''00000000-0000-7000-8000-000000000000''', 'JQ001 JOB_NOT_FOUND'),
    ('gen_random_uuid()', 'JQ001 JOB_NOT_FOUND'),
    ('jobq.enqueue(''x''), repeat(''é'', 512)', 'none'),
    ('jobq.enqueue(''x''), repeat(''é'', 513)', '22023 INVALID_ARGUMENT')
) as a (arguments, refusal);

select * from finish();
rollback;
