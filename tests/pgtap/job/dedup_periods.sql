-- The strategies of dedup keys that look at the time.
-- Needs more than the core.
begin;
select plan(26);

select jobq.put_kind(
    'save', dedup => 'debounce', dedup_period => '1 min', dedup_max_wait => '90 s'
);
select jobq.enqueue('save', '{"n": 1}', dedup_key => 'doc') as first \gset
select is(
    (select run_at from jobq.job where kind = 'save'), now() + interval '1 min',
    'debounce waits for another call'
);
update jobq_private.job
set run_at = run_at - interval '40 s' where kind = 'save';
select is(
    jobq.enqueue('save', '{"n": 2}', dedup_key => 'doc'), :'first', 'which gives the same job'
);
select results_eq(
    'select payload, run_at from jobq.job where kind = ''save''',
    $$values ('{"n": 2}'::jsonb, now() + interval '1 min')$$, 'with the later payload, later'
);
select is(
    (
        select created from jobq.enqueue_many(
            '[{"kind": "save", "payload": {"n": 3}, "dedup_key": "doc"}]'
        )
    ), false, 'a batch does the same'
);
select jobq.enqueue(
    'save', '{"n": 4}', dedup_key => 'doc', run_at => now() + interval '1 h'
);
select results_eq(
    'select payload, run_at from jobq.job where kind = ''save''',
    $$values ('{"n": 4}'::jsonb, now() + interval '90 s')$$, 'but no longer than dedup_max_wait'
);
select isnt(
    jobq.enqueue('save', '{"n": 1}', dedup_key => 'other'), :'first', 'each key has its own'
);
select jobq.put_kind('soon', dedup => 'debounce', dedup_max_wait => '2 s');
select jobq.enqueue('soon', dedup_key => 'doc', expires_at => now() + interval '3 s');
select is(
    (select run_at from jobq.job where kind = 'soon'), now() + interval '2 s',
    'also without another call, which the expiry need not outlast'
);
select jobq.change_many('{"run_at": "2020-01-01"}', array[:'first']::uuid[]);
select is(
    (select c.job_id from jobq.claim('{default}', 'w', 1) as c), :'first', 'it runs then'
);
select jobq.enqueue('save', '{"n": 5}', dedup_key => 'doc') as second \gset
select results_eq(
    'select payload, state collate "default" from jobq.job where kind = ''save'' and idempotency_key is null order by job_id',
    $$
    values ('{"n": 4}'::jsonb, 'running'), ('{"n": 1}', 'queued'), ('{"n": 5}', 'blocked')
    $$,
    'a call while it runs makes a job that waits for its end'
);
select is(
    jobq.enqueue('save', '{"n": 6}', dedup_key => 'doc'), :'second',
    'which takes the payload of later calls'
);
select jobq.fail(:'first', 1, 'x', 'x', retry_in => '1 h');
select is(
    jobq.enqueue('save', '{"n": 7}', dedup_key => 'doc'), :'second',
    'also while the first waits to be tried again'
);
select jobq.change_many('{"run_at": "2020-01-01"}', array[:'first']::uuid[]);
select jobq.complete(c.job_id, c.attempt) from jobq.claim('{default}', 'w', 1) as c;
select jobq.maintain();
select results_eq(
    format('select payload, state collate "default" from jobq.job where job_id = %L', :'second'),
    $$ values ('{"n": 7}'::jsonb, 'queued') $$,
    'it runs after the first, with the newest payload'
);
select jobq.enqueue('keyed', dedup_key => 'a', dedup => 'debounce', concurrency_key => 'k');
select is(
    (select count(*)::integer from jobq.claim('{default}', 'w', 9)), 0,
    'ten seconds unless the kind says otherwise'
);
select jobq.enqueue(
    'keyed', dedup_key => 'a', dedup => 'debounce', run_at => now() - interval '1 s'
);
select is(
    (select count(*)::integer from jobq.claim('{default}', 'w', 9)), 1,
    'a call that names an earlier time brings it forward, also in a key'
);

select jobq.enqueue(
    'save', '{"n": 1}', dedup_key => 'brief', expires_at => now() + interval '70 s'
) as brief \gset
select jobq.enqueue(
    'save', '{"n": 2}', dedup_key => 'brief', run_at => now() + interval '80 s',
    expires_at => now() + interval '1 h'
);
select is(
    (select expires_at from jobq.job where job_id = :'brief'), now() + interval '1 h',
    'the job expires when the later call says'
);
select throws_ok(
    'select jobq.enqueue(''save'', dedup_key => ''x'', expires_at => now() + interval ''1 min'')',
    '22023', null, 'it must expire later than it becomes due'
);

select jobq.put_kind('filed', dedup => 'debounce', concurrency_key => '{tenant}');
select jobq.enqueue('filed', '{"tenant": "a"}', dedup_key => 'doc') as filed \gset
select is(
    jobq.enqueue('filed', '{"n": 1}', dedup_key => 'doc'), :'filed',
    'a call without a concurrency key changes the same job'
);
select jobq.enqueue('filed', '{"tenant": "b"}', dedup_key => 'doc') as refiled \gset
select results_eq(
    format('select payload, concurrency_key from jobq.get_job(%L)', :'refiled'),
    $$values ('{"tenant": "b"}'::jsonb, 'b')$$, 'another concurrency key applies to its payload'
);
select is(
    (select cancel_reason from jobq.get_job(:'filed')), 'replaced by ' || :'refiled',
    'and to a job of its own, because a key never changes'
);

select jobq.put_kind('spending', dedup => 'debounce', cost => '{tokens}');
select jobq.enqueue('spending', '{"tokens": 1}', dedup_key => 'doc');
select jobq.enqueue('spending', '{"tokens": 50}', dedup_key => 'doc');
select is(
    (select cost from jobq.job where kind = 'spending'), 50::numeric,
    'it costs what the later payload says'
);

select jobq.put_kind('alert', dedup => 'throttle', dedup_period => '1 min');
select jobq.enqueue('alert', queue => 'alerts', dedup_key => 'disk') as once \gset
select jobq.complete(c.job_id, c.attempt) from jobq.claim('{alerts}', 'w', 1) as c;
select is(
    jobq.enqueue('alert', queue => 'alerts', dedup_key => 'disk'), :'once',
    'throttle makes one job in a period, whether it has ended or not'
);
select isnt(
    jobq.enqueue('alert', queue => 'alerts', dedup_key => 'cpu'), :'once', 'of each key'
);
update jobq_private.throttle set until = now() where dedup_key = 'disk';
select isnt(
    jobq.enqueue('alert', queue => 'alerts', dedup_key => 'disk'), :'once',
    'and another one when it is over'
);
select jobq.delete_many(array_agg(j.job_id)) from jobq.job as j where j.dedup_key = 'disk';
select jobq.enqueue('alert', queue => 'alerts', dedup_key => 'disk');
select is(
    (select count(*)::integer from jobq.job where dedup_key = 'disk'), 1,
    'and after the job was deleted'
);
select throws_ok(
    'select jobq.put_kind(''k'', dedup_period => ''0'')', '22023', null,
    'a period has a length'
);
select throws_ok(
    'select jobq.enqueue(''k'', dedup_key => ''a'', dedup => ''often'')', '22023', null,
    'another strategy is refused'
);

select * from finish();
rollback;
