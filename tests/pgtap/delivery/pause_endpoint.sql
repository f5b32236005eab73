-- What jobq.pause_endpoint(), resume_endpoint() and test_endpoint() promise.
begin;
select plan(43);

create function pg_temp.reasons(job_id uuid)
returns text[]
language sql
as $$ select array_agg(e.reason) from jobq.explain(job_id) as e $$;

select jobq.put_endpoint('e', 'HTTP', '{"url": "https://a.example"}', max_attempts => 3) as doc \gset
select jobq.put_endpoint('other', 'HTTP', '{"url": "https://a.example"}') as doc \gset
select jobq.enqueue('e', '{"n": 0}') as running \gset
select is((select c.job_id from jobq.claim('{default}', 'w') as c), :'running', 'it delivers');

select jobq.enqueue('e', '{"n": 1}', priority => 2, run_at => now() - interval '2 h') as early \gset
select jobq.enqueue('e', '{"n": 2}', run_at => now() - interval '1 h') as late \gset
select jobq.enqueue('e', run_at => now() + interval '1 h') as tomorrow \gset
select jobq.pause_endpoint('e', 'they are down');
select jobq.enqueue('e') as new \gset
select jobq.enqueue('other') as others \gset
select jobq.enqueue('plain') as plain \gset

select is(
    pg_temp.reasons(:'late'), '{paused,no_worker,waiting}', 'explain() says that it is paused'
);
select matches(
    (select e.explanation from jobq.explain(:'late') as e limit 1),
    '^endpoint e since .*: they are down$', 'and why'
);
select set_eq(
    'select c.job_id from jobq.claim(''{default}'', ''w'', 9) as c
    union all select c.job_id from jobq.claim(''{default}'', ''w'', 9) as c',
    array[:'others', :'plain']::uuid[],
    'jobs of a paused endpoint are not claimed, and are in nobody''s way'
);
select is_empty('select jobq.claim(''{default}'', ''w'', 9)', 'now and later');
select is_empty(
    format('select from jobq.claim_job(%L, ''w'')', :'early'), 'nor by their id'
);
update jobq.job set state = 'running' where job_id = :'early';
select is((jobq.get_job(:'early')).state, 'queued', 'nor through the view');
select is((jobq.get_job(:'early')).attempt, 0, 'no attempt is spent');
select is(pg_temp.reasons(:'early'), '{paused}', 'explain() says so of what was put aside');
select is(
    pg_temp.reasons(:'tomorrow'), '{paused,scheduled}', 'and of what is due later'
);
select is(pg_temp.reasons(:'others'), '{running}', 'other endpoints go on');
select is(
    jobq.fail(:'running', 1, 'no', retry_in => '0 s'), 'retrying', 'what runs goes on, and fails'
);
select is_empty('select jobq.claim(''{default}'', ''w'', 9)', 'its retry waits too');
select jobq.pause_endpoint('e');
select results_eq(
    $$ select d ->> 'pause_reason', d ->> 'paused_at' is not null
    from jobq_internal.show_definition('endpoint', 'e') as d $$,
    $$ values ('they are down', true) $$,
    'the endpoint says that it is paused'
);
select jobq.put_endpoint('e', 'HTTP', '{"url": "https://b.example"}', max_attempts => 3) as doc \gset
select is(
    jobq_internal.show_definition('endpoint', 'e') ->> 'pause_reason', 'they are down',
    'a new version of it is as paused'
);

-- Tests are delivered all the same, the last of them.
select jobq_internal.test_endpoint('e', '{"n": 8}') as first_test \gset
select jobq_internal.test_endpoint('e', '{"n": 9}') as test \gset
select results_eq(
    'select c.job_id, c.payload, c.max_attempts, c.metadata
    from jobq.claim(''{default}'', ''w'', 9) as c',
    format(
        $$ values (%L::uuid, '{"n": 9}'::jsonb, 1, '{"test": true}'::jsonb) $$, :'test'
    ),
    'the last test goes'
);
select is(pg_temp.reasons(:'first_test'), '{paused}', 'the one before waits with all others');
select is(pg_temp.reasons(:'test'), '{running}', 'a test says nothing of a pause');

-- Redrive, cancel and change of what was put aside
select jobq.cancel(:'new');
select jobq.redrive(:'new');
select is_empty('select jobq.claim(''{default}'', ''w'', 9)', 'a redriven job waits again');
select from jobq.change_many('{"run_at": "now"}', array[:'late']::uuid[]);
select is_empty('select jobq.claim(''{default}'', ''w'', 9)', 'one that was moved too');
select from jobq.change_many(
    jsonb_build_object('run_at', now() + interval '2 h'), array[:'new']::uuid[]
);
select jobq.cancel(:'first_test');

select is(jobq.resume_endpoint('e'), 3::bigint, 'resume_endpoint() tells how many waited');
select is(jobq.resume_endpoint('e'), 0::bigint, 'and nothing when called again');
select is(
    (jobq.get_job(:'early')).run_at, now() - interval '2 h', 'each is due when it was due before'
);
select is(
    (jobq.get_job(:'new')).run_at, now() + interval '2 h', 'but for one that was put off'
);
select is_empty('select from jobq_private.parked_job', 'nothing is left');
select is(
    array(
        select c.job_id from jobq.claim('{default}', 'w', 9) as c
    ), array[:'early', :'late', :'running']::uuid[], 'they run in their order'
);
select is(
    jobq_internal.show_definition('endpoint', 'e') ->> 'paused_at', null, 'it is paused no more'
);
select results_eq(
    $$ select a.action, a.reason from jobq.audit as a where a.subject = 'e' and a.action <> 'put_endpoint' order by 1, 2 $$,
    $$ values ('pause_endpoint', 'they are down'), ('pause_endpoint', null), ('resume_endpoint', null) $$,
    'the audit knows'
);
select is(
    refusal(format('select %s', c.call)), c.refusal, format('%s: %s', c.call, c.refusal)
)
from (
    values
    ('jobq.pause_endpoint(null)', '22004 NULL_ARGUMENT'),
    ('jobq.pause_endpoint(''e'', repeat(''x'', 513))', '22023 INVALID_ARGUMENT'),
    ('jobq.pause_endpoint(''nobody'')', 'JQ007 ENDPOINT_NOT_FOUND'),
    ('jobq.pause_endpoint(''plain'')', 'JQ007 ENDPOINT_NOT_FOUND'),
    ('jobq.resume_endpoint(null)', '22004 NULL_ARGUMENT'),
    ('jobq.resume_endpoint(''nobody'')', 'JQ007 ENDPOINT_NOT_FOUND'),
    ('jobq_internal.test_endpoint(null)', '22004 NULL_ARGUMENT'),
    ('jobq_internal.test_endpoint(''nobody'')', 'JQ007 ENDPOINT_NOT_FOUND'),
    ('jobq_internal.test_endpoint(''e'', null)', 'none')
) as c (call, refusal);

-- A tenant's worker, which may not change the endpoint
create role pgtap_shop;
grant jobq_worker, jobq_producer, jobq_operator to pgtap_shop;
grant usage on schema tap to pgtap_shop;
select jobq.grant_queue('pgtap_shop', 'shop', p) from unnest('{enqueue,work}'::text[]) as p;
select jobq.put_endpoint('hook', 'HTTP', '{"url": "https://a.example"}', queue => 'shop') as doc \gset
select jobq.enforce_queue_grants();
select jobq.pause_endpoint('hook');
set session authorization pgtap_shop;
select jobq.enqueue('hook') from generate_series(1, 100);
select jobq.enqueue('plain', queue => 'shop') as behind \gset
select count(*) from generate_series(1, 12) as n
cross join lateral jobq.claim('{shop}', 'w', 9 + n % 2) as c;
select refusal('select jobq.pause_endpoint(''hook'')') as pause,
    refusal('select jobq.resume_endpoint(''hook'')') as resume \gset
reset session authorization;
select is(
    (jobq.get_job(:'behind')).state, 'running',
    'jobs of a paused endpoint are not in the way of a tenant'
);
select is(count(*), 100::bigint, 'they are put aside') from jobq_private.parked_job;
select is(:'pause'::text, '42501 ALL_QUEUES_NEEDED', 'who has some queues may not pause an endpoint');
select is(:'resume'::text, '42501 ALL_QUEUES_NEEDED', 'nor resume one');
select is(jobq.resume_endpoint('hook'), 100::bigint, 'who has all may');
set session authorization pgtap_shop;
select count(*) as claimed from jobq.claim('{shop}', 'w', 200) \gset
reset session authorization;
select is(:'claimed'::text, '100', 'and the tenant gets its jobs');

select * from finish();
rollback;
