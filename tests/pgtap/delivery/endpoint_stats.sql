-- What jobq_internal.endpoint_stats() promises.
begin;
select plan(12);

select jobq.put_endpoint('e', 'HTTP', '{"url": "https://a.example"}', max_attempts => 2,
    retry_initial_delay => '0 s') as doc \gset
select results_eq(
    'select s.attempts, s.success_rate, s.p95_ms, s.failures, s.since
    from jobq_internal.endpoint_stats(''e'') as s',
    $$ values (0::bigint, null::double precision, null::bigint, '{}'::jsonb, now() - interval '1 h') $$,
    'nothing is told of no attempts'
);

-- Of ten jobs eight succeed at once, one in its second attempt, and one is dead.
select jobq.enqueue('e') from generate_series(1, 10);
select jobq.enqueue('plain') from generate_series(1, 3);
select from jobq.claim('{default}', 'w', 99);
select jobq.complete(j.job_id, 1) from (
    select * from jobq.job as j where j.kind = 'e' order by j.job_id limit 8
) as j;
select jobq.fail(j.job_id, 1, 'no', error_code => 'HTTP_ERROR') from jobq.job as j
where j.state = 'running';
select from jobq.claim('{default}', 'w', 99);
select jobq.complete(j.job_id, 2) from (
    select * from jobq.job as j where j.kind = 'e' and j.state = 'running' order by j.job_id limit 1
) as j;
select jobq.fail(j.job_id, 2, 'no', error_code => 'TIMEOUT') from jobq.job as j
where j.kind = 'e' and j.state = 'running';
select jobq.enqueue('e') as released \gset
select from jobq.claim_job(:'released', 'w');
select jobq.release(:'released', 1);
select results_eq(
    'select s.attempts, s.succeeded, s.failed, s.success_rate, s.failures
    from jobq_internal.endpoint_stats(''e'') as s',
    $$ values (12::bigint, 9::bigint, 3::bigint, 0.75::double precision,
        '{"HTTP_ERROR": 2, "TIMEOUT": 1}'::jsonb) $$,
    'each attempt counts that succeeded or failed, and none that was given back'
);
update jobq_private.attempt set started_at = finished_at - interval '2 s' where endpoint = 'e';
select results_eq(
    'select s.p50_ms < 2000, s.p95_ms, s.p99_ms from jobq_internal.endpoint_stats(''e'') as s',
    $$ values (true, 2000::bigint, 2000::bigint) $$, 'it tells how long they took'
);
update jobq_private.attempt set finished_at = finished_at - interval '2 h' where endpoint = 'e';
select is(
    (select s.success_rate from jobq_internal.endpoint_stats('e') as s), 1::double precision,
    'of those that ended in the period'
);
select is(
    (select s.attempts from jobq_internal.endpoint_stats('e', '1 day') as s), 12::bigint,
    'which the caller chooses'
);
select is(
    (select count(*) from jobq_private.attempt as a where a.endpoint is null), 3::bigint,
    'attempts that are no deliveries are kept out of the index'
);

-- The newest 1,000
insert into jobq_private.attempt (
    job_id, attempt, state, started_at, finished_at, error_code, endpoint
)
select
    jobq_private.new_id(0), 1, 'retrying', now() + interval '1 s' * n, now() + interval '1 s' * n,
    'X', 'e'
from generate_series(1, 1500) as n;
select results_eq(
    'select s.attempts, s.failed, s.since = now() + interval ''501 s''
    from jobq_internal.endpoint_stats(''e'') as s',
    $$ values (1000::bigint, 1000::bigint, true) $$, 'it looks at a thousand at most, and says since when'
);

select is(
    refusal(format('select jobq_internal.endpoint_stats(%s)', c.given)), c.refusal,
    format('endpoint_stats(%s): %s', c.given, c.refusal)
)
from (
    values
    ('null', '22004 NULL_ARGUMENT'), ('''e'', null', '22004 NULL_ARGUMENT'),
    ('''e'', ''0 s''', '22023 INVALID_ARGUMENT'), ('''e'', ''31 days''', '22023 INVALID_ARGUMENT'),
    ('''plain''', 'JQ007 ENDPOINT_NOT_FOUND')
) as c (given, refusal);

select * from finish();
rollback;
