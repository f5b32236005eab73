-- What jobq.claim() promises.
-- Needs more than the core.
begin;
select plan(37);

-- A claimed job
select jobq.enqueue(
    'work', '{"n": 1}', queue => 'one', max_attempts => 3, timeout => '90 s',
    idempotency_key => 'ik', metadata => '{"m": 1}'
) as one \gset
create temporary table claimed as select * from jobq.claim('{one}', 'w1');
select results_eq(
    'select job_id, attempt, kind, payload, metadata, queue, max_attempts, timeout,
    run_at, created_at, idempotency_key from claimed',
    format(
        $$
        values (%L::uuid, 1, 'work', '{"n": 1}'::jsonb, '{"m": 1}'::jsonb, 'one', 3,
            interval '90 s', now(), now(), 'ik')
        $$,
        :'one'
    ),
    'a worker receives all it needs, and its attempt number'
);
select results_eq(
    format(
        $$
        select j.state, j.previous_state, j.worker, j.attempt, j.attempts,
            j.claimed_at between now() and clock_timestamp(),
            j.lease_expires_at - j.claimed_at, j.heartbeat_at
        from jobq.job as j where j.job_id = %L
        $$,
        :'one'
    ),
    $$
    values ('running' collate "C", 'queued' collate "C", 'w1', 1, 1, true,
        interval '30 s', null::timestamptz)
    $$,
    'the job runs, leased to the worker from now on'
);
select is(
    (select c.lease_expires_at from claimed as c),
    (select j.lease_expires_at from jobq.job as j where j.job_id = :'one'),
    'the worker learns when its lease ends'
);
select is_empty(
    'select * from jobq.claim(''{one}'', ''w2'')', 'a leased job is not claimed again'
);

-- Bounds
select jobq.enqueue('work', to_jsonb(n), queue => 'ten')
from generate_series(1, 10) as n;
select is_empty(
    'select * from jobq.claim(''{ten}'', ''w'', 0)', 'max_jobs 0 claims nothing'
);
select is(
    (select count(*) from jobq.claim('{ten}', 'w')), 1::bigint,
    'one job is claimed by default'
);
select is(
    (select count(*) from jobq.claim('{ten}', 'w', 4)), 4::bigint,
    'up to max_jobs are claimed'
);
select is(
    (select count(*) from jobq.claim('{ten}', 'w', 10000)), 5::bigint,
    'fewer where there are fewer'
);
select jobq.enqueue('work', queue => q) from unnest('{twice,twice,once}'::text[]) as q;
select is(
    (select count(*) from jobq.claim('{twice,twice,once}', 'w', 3)), 3::bigint,
    'a job of a queue that is named twice counts once'
);
select is_empty('select * from jobq.claim(''{}'', ''w'', 5)', 'no queues, no jobs');
select is_empty(
    'select * from jobq.claim(''{nowhere}'', ''w'', 5)', 'an unknown queue is empty'
);

-- Order
create temporary table expected_order (n integer generated always as identity,
    job_id uuid);
insert into expected_order (job_id) values
(jobq.enqueue('o', queue => 'o', priority => 5)),
(jobq.enqueue('o', queue => 'o', priority => 5)),
(jobq.enqueue('o', queue => 'o', run_at => now() - interval '2 s')),
(jobq.enqueue('o', queue => 'o', run_at => now() - interval '1 s')),
(jobq.enqueue('o', queue => 'o')),
(jobq.enqueue('o', queue => 'o', priority => -5, run_at => now() - interval '1 h')),
(jobq.enqueue('o', queue => 'o', priority => -32768, run_at => now() - interval '2 h'));
create function pg_temp.claim_all(queues text[], at_once integer)
returns uuid[]
language plpgsql
as $$
declare
    _all uuid[] := '{}';
    _some uuid[];
begin
    loop
        _some := array(
            select c.job_id
            from jobq.claim(claim_all.queues, 'w', claim_all.at_once) as c
        );
        exit when _some = '{}';
        _all := _all || _some;
    end loop;
    return _all;
end
$$;
savepoint ordered;
select is(
    pg_temp.claim_all('{o}', 1),
    array(select e.job_id from expected_order as e order by e.n),
    'within a queue: priority, then run_at, then id'
);
rollback to savepoint ordered;
select is(
    (
        select array_agg(distinct e.n order by e.n)
        from jobq.claim('{o}', 'w', 3) as c
        join expected_order as e on e.job_id = c.job_id
    ),
    '{1,2,3}', 'a batch takes the first ones'
);
rollback to savepoint ordered;
select jobq.enqueue('first', queue => 'p', priority => -9) as other \gset
select is(
    (pg_temp.claim_all('{p,o}', 1))[1], :'other'::uuid,
    'queues are emptied in the order given, whatever the priority of their jobs'
);
rollback to savepoint ordered;
select is(
    (select count(*) from jobq.claim('{nowhere,o,o,nowhere}', 'w', 100)), 7::bigint,
    'a queue may be named twice'
);
rollback to savepoint ordered;

-- What is not runnable
select jobq.enqueue('later', queue => 'l', run_at => now() + interval '1 h',
    priority => 9)
    as later \gset
select jobq.enqueue('now', queue => 'l') as ready \gset
select is(
    array(select c.job_id from jobq.claim('{l}', 'w', 9) as c), array[:'ready'::uuid],
    'a job for later is passed over, whatever its priority'
);
update jobq_private.job set run_at = clock_timestamp() where job_id = :'later';
select is(
    array(select c.job_id from jobq.claim('{l}', 'w', 9) as c), array[:'later'::uuid],
    'and claimed once it is due'
);
select jobq.enqueue('held', queue => 'p');
select jobq.pause_queue('p');
select is_empty(
    'select * from jobq.claim(''{p}'', ''w'', 9)', 'a paused queue gives nothing'
);
select jobq.enqueue('x', queue => 'q');
select is(
    (select count(*) from jobq.claim('{p,q}', 'w', 9)), 1::bigint,
    'and does not hold up the others'
);
select jobq.resume_queue('p');
select is(
    (select count(*) from jobq.claim('{p}', 'w', 9)), 1::bigint,
    'once resumed, it gives again'
);

-- Attempts go on counting
select jobq.fail(:'one', 1, 'boom', retry_in => '0');
select results_eq(
    'select c.job_id, c.attempt from jobq.claim(''{one}'', ''w2'') as c',
    format('values (%L::uuid, 2)', :'one'),
    'a retried job comes back with the next attempt'
);
select jobq.release(:'one', 2);
select results_eq(
    'select c.job_id, c.attempt from jobq.claim(''{one}'', ''w3'') as c',
    format('values (%L::uuid, 3)', :'one'), 'so does a released one'
);
select is(
    (select j.attempts from jobq.job as j where j.job_id = :'one'), 2,
    'though the released attempt does not count'
);

-- A queue's lease
select jobq.put_queue('short', lease => '2 s');
select jobq.enqueue('x', queue => 'short');
select from jobq.claim('{short}', 'w');
select is(
    (select j.lease_expires_at - j.claimed_at from jobq.job as j
    where j.queue = 'short'),
    interval '2 s', 'the lease is that of the job''s queue'
);

-- Null arguments and bad input
select is(
    refusal(format('select jobq.claim(%s)', a.arguments)), a.refusal,
    format('claim(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('null, ''w''', '22004 NULL_ARGUMENT'),
    ('''{a,null}'', ''w''', '22004 NULL_ARGUMENT'),
    ('''{a}'', null', '22004 NULL_ARGUMENT'),
    ('''{a}'', ''w'', null', '22004 NULL_ARGUMENT'),
    ('''{a}'', ''''', '22023 INVALID_ARGUMENT'),
    ('''{a}'', repeat(''w'', 256)', 'none'),
    ('''{a}'', repeat(''w'', 257)', '22023 INVALID_ARGUMENT'),
    ('''{a}'', ''w'', -1', '22023 INVALID_ARGUMENT'),
    ('''{a}'', ''w'', 10001', '22023 INVALID_ARGUMENT'),
    ('''{a}'', ''w'', 1, -1', '22023 INVALID_ARGUMENT')
) as a (arguments, refusal);

-- Priorities whose jobs are all due later
insert into jobq_private.job (
    job_id, kind, queue, priority, run_at, max_attempts, timeout, lease
)
select jobq_private.new_id(0), 'later', 'layers', n, now() + interval '1 h', 1, '1 s', '1 s'
from generate_series(-2000, 2000) as n;
select is_empty(
    $$ select jobq.claim('{layers}', 'w', 10) $$, 'what is due later is not claimed'
);
select jobq.enqueue('lowest', queue => 'layers', priority => -1500);
select results_eq(
    $$ select c.kind from jobq.claim('{layers}', 'w', 10) as c $$, $$ values ('lowest') $$,
    'and thousands of priorities of it do not hide what is due'
);

-- What has limits is counted over all queues
select jobq.put_queue(q, max_running => 5) from unnest(array['bound', 'bound too']) as q;
select jobq.enqueue('work', queue => q)
from unnest(array['bound', 'bound too']) as q
cross join generate_series(1, 3);
select jobq.enqueue('work', queue => 'free');
select results_eq(
    $$
    select queue, count(*) from jobq.claim('{bound,bound too,free}', 'w', 10, 2) group by 1 order by 1
    $$,
    $$ values ('bound', 2::bigint), ('free', 1) $$,
    'max_limited bounds what comes from limited queues taken together'
);

select * from finish();
rollback;
