-- What jobq.redrive() promises.
-- Needs more than the core.
begin;
select plan(27);

select jobq.enqueue('work', '{"n": 1}', max_attempts => 1,
    run_at => now() - interval '1 h',
    priority => 3, dedup_key => 'd', idempotency_key => 'i',
    metadata => '{"m": 1}') as dead \gset
select from jobq.claim_job(:'dead', 'w');
select jobq.set_progress(:'dead', 1, '0.5');
select jobq.fail(:'dead', 1, 'boom', 'E');
create temporary table before as select * from jobq.job where job_id = :'dead';
select is(
    jobq.redrive(:'dead'), 'queued', 'a dead job goes back to its queue'
);
select results_eq(
    format(
        'select state, previous_state, attempt, attempts, run_at, finished_at, progress
        from jobq.get_job(%L)', :'dead'
    ),
    $$
    values ('queued' collate "C", 'dead' collate "C", 1, 0, now(), null::timestamptz,
        null::jsonb)
    $$,
    'its attempts start afresh, it may run at once, and the attempt number stays'
);
select is_empty(
    $$
    select c.key
    from before as b
    cross join jobq.job as j
    cross join lateral jsonb_each(to_jsonb(b)) as c
    where j.job_id = b.job_id
    and to_jsonb(j) -> c.key is distinct from c.value
    and c.key not in ('state', 'previous_state', 'attempts', 'run_at', 'finished_at',
        'progress', 'worker', 'claimed_at', 'updated_at')
    $$,
    'nothing else of it changes'
);
select is_empty(
    format('select from jobq_private.job_archive where job_id = %L', :'dead'),
    'it is no longer in the archive'
);
select is(
    (select c.attempt from jobq.claim_job(:'dead', 'w') as c), 2,
    'it is claimed as its next attempt, so that the old one stays stale'
);
select is(
    refusal(format('select jobq.complete(%L, 1)', :'dead')), 'JQ003 LEASE_LOST',
    'the attempt from before cannot complete'
);
select is(jobq.fail(:'dead', 2, 'boom'), 'dead', 'max_attempts holds again');
select jobq.redrive(:'dead');
select is(
    (select count(*) from jobq_internal.list_attempts(:'dead')), 2::bigint, 'the history is kept'
);

select jobq.enqueue('work') as cancelled \gset
select jobq.cancel(:'cancelled', 'no');
select jobq.redrive(:'cancelled');
select results_eq(
    format(
        'select state, attempts, cancel_reason, cancel_requested_at
        from jobq.get_job(%L)',
        :'cancelled'
    ),
    $$ values ('queued' collate "C", 0, null::text, null::timestamptz) $$,
    'so does a cancelled job, which forgets that it was'
);

-- One that has to wait again
select jobq.enqueue('work') as parent \gset
select jobq.enqueue('work', after => array[:'parent'::uuid]) as child \gset
select jobq.cancel(:'child');
select is(jobq.redrive(:'child'), 'blocked', 'a job that has to wait again says so');

-- What cannot be redriven
select jobq.enqueue('work') as done, jobq.enqueue('work') as running,
    jobq.enqueue('work') as retrying \gset
select from jobq.claim_job(:'done', 'w');
select jobq.complete(:'done', 1);
select from jobq.claim_job(:'running', 'w');
select from jobq.claim_job(:'retrying', 'w');
select jobq.fail(:'retrying', 1, 'x');
select is(
    refusal(format('select jobq.redrive(%L)', a.job_id)), a.refusal,
    format('redrive of %s: %s', a.label, a.refusal)
)
from (
    values
    ('a succeeded job', :'done', 'JQ002 ILLEGAL_STATE'),
    ('a queued job', :'cancelled', 'JQ002 ILLEGAL_STATE'),
    ('a running job', :'running', 'JQ002 ILLEGAL_STATE'),
    ('a retrying job', :'retrying', 'JQ002 ILLEGAL_STATE'),
    ('an unknown job', '00000000-0000-7000-8000-000000000000', 'JQ001 JOB_NOT_FOUND'),
    ('null', null, '22004 NULL_ARGUMENT')
) as a (label, job_id, refusal);

-- Dedup keys
select jobq.enqueue('d', dedup_key => 'k') as old \gset
select jobq.cancel(:'old');
select jobq.enqueue('d', dedup_key => 'k') as heir \gset
select is(
    refusal(format('select jobq.redrive(%L)', :'old')), 'JQ004 DEDUP_CONFLICT',
    'a job whose dedup key has a new holder stays where it is'
);
select is((jobq.get_job(:'old')).state::text, 'cancelled', 'and keeps its state');
select jobq.cancel(:'heir');
select is(
    refusal(format('select jobq.redrive(%L)', :'old')), 'none',
    'until that one has ended'
);
select jobq.cancel(:'old');
select jobq.enqueue('d', dedup_key => 'k', dedup => 'debounce', run_at => now()) as begun \gset
select from jobq.claim_job(:'begun', 'w');
select lives_ok(
    format('select jobq_private.refuse_redrive(jobq.get_job(%L))', :'old'),
    'a debounced job that has begun holds no key'
);

-- By the endpoint as it is now
select jobq.put_endpoint('hook', 'HTTP', '{"url": "http://old"}') as doc \gset
create temporary table delivered as
select n, jobq.enqueue('hook', dedup_key => n::text) as job_id from generate_series(1, 2) as n;
select jobq.cancel(d.job_id) from delivered as d;
select jobq.put_endpoint('hook', 'HTTP', '{"url": "http://new"}') as doc \gset
select jobq.redrive(d.job_id, latest => d.n = 2) from delivered as d;
select results_eq(
    $$
        select j.state, g.spec::jsonb ->> 'url'
        from delivered
        join jobq_private.job as j using (job_id)
        cross join lateral jobq_internal.get_delivery('hook', j.delivery_version, j.job_id) as g
        order by n
    $$,
    $$ values ('queued' collate "C", 'http://old'), ('queued', 'http://new') $$,
    'a delivery is repeated as it was made, or by the endpoint as it is now'
);
select job_id as late from delivered where n = 2 \gset
select is(
    refusal(format('select jobq.redrive(%L, true)', :'late')), 'JQ002 ILLEGAL_STATE',
    'by that too only one that has ended comes back'
);
select jobq.cancel(:'late');
select jobq.enqueue('hook', dedup_key => '2') is not null as is_made \gset
select is(
    refusal(format('select jobq.redrive(%L, true)', :'late')), 'JQ004 DEDUP_CONFLICT',
    'and one whose dedup key has a new holder stays'
);
select is(
    refusal(format('select jobq.redrive(%L, null)', :'late')), '22004 NULL_ARGUMENT',
    'latest is needed'
);

-- With more attempts
select jobq.enqueue('tries', max_attempts => 1) as tries \gset
select from jobq.claim_job(:'tries', 'w');
select jobq.fail(:'tries', 1, 'boom');
select is(
    refusal(format('select jobq.redrive(%L, max_attempts => 0)', :'tries')),
    '22023 INVALID_ARGUMENT', 'a job gets at least one attempt'
);
select jobq.redrive(:'tries', max_attempts => 2);
select from jobq.claim_job(:'tries', 'w');
select is(jobq.fail(:'tries', 2, 'boom'), 'retrying', 'a job can come back with more attempts');
select count(*) from jobq.change_many('{"run_at": "now"}', array[:'tries'::uuid]);
select from jobq.claim_job(:'tries', 'w');
select is(jobq.fail(:'tries', 3, 'boom'), 'dead', 'all of them counted from now on');

select * from finish();
rollback;
