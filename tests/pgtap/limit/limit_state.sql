-- Limits of whole queues and kinds, rates, holds and order, by one session;
-- tests/python/test_limits.py has many.
begin;
select plan(66);

create function pg_temp.claimed(queue text, jobs integer default 9)
returns integer
language sql
as $$
    select count(*)::integer from jobq.claim(array[queue], 'w', jobs)
$$;

create function pg_temp.finish(queue text)
returns boolean
language sql
as $$
    select jobq.complete(j.job_id, j.attempt) from jobq.job as j
    where j.queue = finish.queue and j.state = 'running' order by j.job_id limit 1
$$;

-- What is refused
select is(
    refusal(format('select jobq.%s', statement)), '22023 INVALID_ARGUMENT', statement
)
from unnest(array[
    'put_queue(''q'', max_running => 0)', 'put_queue(''q'', max_running => 32768)',
    'put_queue(''q'', rate_limit => 0)', 'put_queue(''q'', rate_limit => 1, rate_period => ''0'')',
    'put_queue(''q'', rate_limit => 1, rate_burst => -1)', 'put_queue(''q'', rate_burst => 1)',
    'put_queue(''q'', key_rate_limit => -1)', 'put_queue(''q'', on_dead => ''hold'')',
    'put_queue(''q'', ordered => true, on_dead => ''stop'')',
    'put_kind(''k'', max_running => 0)', 'put_kind(''k'', rate_period => ''1 s'')',
    'put_limit(''q'', ''a'', rate_burst => 1)', 'put_limit(''q'', ''a'', rate_limit => 1000000001)',
    'hold_key(''q'', '''', ''infinity'')', 'release_key(''q'', ''a'', ''k'')',
    'rate_limited(gen_random_uuid(), 1, ''178000000 years'')',
    'rate_limited(gen_random_uuid(), 1, ''-178000000 years'')'
]) as statement;

-- A whole queue
select jobq.put_queue('two', max_running => 2);
select jobq.enqueue('k', queue => 'two', concurrency_key => nullif(n % 2, 0)::text)
from generate_series(1, 6) as n;
select is(pg_temp.claimed('two'), 2, 'a queue runs as many jobs as it may, with and without keys');
select is(pg_temp.claimed('two'), 0, 'and no more');
select is(jobq.due_in('{two}'), null, 'a worker need not look until one ends');
select is(
    (
        select count(*)::integer from jobq.claim_job(
            (select job_id from jobq.job where queue = 'two' and state = 'queued' limit 1), 'w'
        )
    ), 0, 'a claim of one job keeps to it'
);
set local role jobq_owner;
select is(
    refusal('update jobq_private.job set state = ''running'''
        ' where queue = ''two'' and state = ''queued'''),
    'JQ011 LIMIT_REACHED', 'and raw SQL'
);
reset role;
select results_eq(
    'select reason from jobq.explain((select job_id from jobq.job'
        ' where queue = ''two'' and state = ''queued'' limit 1)) limit 1',
    '{queue_busy}'::text[], 'explain says so'
);
select is(pg_temp.finish('two'), true, 'one ends');
select is(pg_temp.claimed('two'), 1, 'and another starts');
select jobq.put_queue('two', max_running => 3);
select is(pg_temp.claimed('two'), 1, 'a limit that is raised holds at once');
select jobq.put_queue('two');
select is(pg_temp.claimed('two'), 2, 'and one that is taken away');
select jobq.put_queue('two', max_running => 5);
select jobq.enqueue('k', queue => 'two');
select is(pg_temp.claimed('two'), 0, 'what started without a limit counts');

-- A whole kind, in two queues
select jobq.enqueue('limited', queue => q) from unnest('{x,y}'::text[]) as q, generate_series(1, 3);
select jobq.put_kind('limited', max_running => 2);
select jobq.enqueue('limited', queue => 'x', concurrency_key => n::text)
from generate_series(1, 3) as n;
select jobq.enqueue('free', queue => 'x');
select is(
    (
        select count(*)::integer from generate_series(1, 9) as n
        cross join lateral jobq.claim('{x}', 'w' || n, 1) as c
        where c.kind = 'limited'
    ),
    2, 'jobs of a kind start up to its limit'
);
select pg_temp.claimed('y');
select pg_temp.claimed('x');
select is(
    (select count(*)::integer from jobq.job where state = 'running' and kind = 'limited'), 2,
    'across queues, and whether they were made before the limit or after, with keys or without'
);
select is(
    (select state from jobq.job where kind = 'free'), 'running', 'and hold up no other kind'
);
select is(pg_temp.finish('x'), true, 'one ends');
select is(pg_temp.claimed('x') + pg_temp.claimed('y'), 1, 'and another starts');

-- Several at once
select jobq.put_kind('bound', max_running => 1, key_max_running => 1);
select jobq.put_queue(
    'bound', max_running => 1, key_max_running => 1, rate_limit => 1, rate_period => '1 h'
);
select jobq.enqueue('bound', queue => 'bound', concurrency_key => 'k') from generate_series(1, 2);
select from pg_temp.claimed('bound');
select results_eq(
    $$
    select e.reason, regexp_replace(e.explanation, ': .*', '')
    from jobq.explain((
        select j.job_id from jobq.job as j where j.queue = 'bound' and j.state = 'queued'
    )) with ordinality as e (reason, explanation, nth)
    where e.reason <> all ('{no_worker,waiting}')
    order by e.nth
    $$,
    $$
    values ('rate_limited', 'queue bound'), ('queue_busy', 'queue bound'),
    ('kind_busy', 'kind bound'), ('key_busy', 'kind bound, concurrency_key k')
    $$,
    'explain names all that hold a job'
);

-- Rates
select jobq.put_queue('rate', rate_limit => 2, rate_period => '10 s', rate_burst => 3);
select jobq.enqueue('k', queue => 'rate') from generate_series(1, 9);
select is(pg_temp.claimed('rate'), 3, 'a burst starts at once');
select is(pg_temp.claimed('rate'), 0, 'then the rate holds');
select results_eq(
    'select reason from jobq.explain((select job_id from jobq.job'
        ' where queue = ''rate'' and state = ''queued'' limit 1)) limit 1',
    '{rate_limited}'::text[], 'explain says so'
);
select ok(jobq.due_in('{rate}') between '4 s' and '5 s', 'a worker knows when the next may start');
update jobq_private.limit_state set charged_at = charged_at - interval '10 s';
select is(pg_temp.claimed('rate'), 2, 'a period later as many start as the rate says');
update jobq_private.limit_state set charged_at = now() + interval '1 day';
select ok(
    jobq.due_in('{rate}') < '6 s', 'a clock that went back holds up a queue for no longer'
);
select jobq.put_queue('key rate', key_rate_limit => 1, key_rate_period => '1 min');
select jobq.put_limit('key rate', '0', rate_limit => 5, rate_period => '1 s', rate_burst => 5);
select jobq.enqueue('k', queue => 'key rate', concurrency_key => (n % 2)::text)
from generate_series(1, 8) as n;
select is(pg_temp.claimed('key rate'), 5, 'each key has a rate, and single keys their own');
update jobq_private.limit_state set rate_used = 0;
select is(pg_temp.claimed('key rate'), 0, 'keys whose rate is spent are closed until it is not');

-- What a target asks for
select jobq.enqueue('called', queue => 'calls') from generate_series(1, 3);
select c.job_id as called, c.attempt from jobq.claim('{calls}', 'w', 1) as c \gset
select jobq.rate_limited(:'called', :attempt, '1 h', 'status 429');
select is(
    pg_temp.claimed('calls') + pg_temp.claimed('calls') + pg_temp.claimed('calls'), 0,
    'whom a job calls has the others of its kind in the queue wait'
);
select throws_ok('select jobq.release_key(''calls'')', '22004', null, 'what is held must be named');
select is(jobq.release_key('calls', kind => 'called'), true, 'the hold of a kind can be ended');
select is(jobq.release_key('calls', kind => 'called'), false, 'once');
select is(pg_temp.claimed('calls') + pg_temp.claimed('calls'), 3, 'and its jobs start');

-- Holds
select jobq.enqueue('k', queue => 'held', concurrency_key => 'a');
select jobq.hold_key('held', 'a', 'infinity', 'the provider said so');
select is(pg_temp.claimed('held'), 0, 'a held key starts nothing');
select is(jobq.due_in('{held}'), null, 'nor is anything due');
select results_eq(
    'select reason from jobq.explain((select job_id from jobq.job where queue = ''held''))'
        ' limit 1',
    '{held}'::text[], 'explain says so'
);
select is(jobq.release_key('held', 'a'), true, 'it is released');
select is(pg_temp.claimed('held'), 1, 'and starts');

-- Order
select jobq.put_queue('line', ordered => true, on_dead => 'hold');
select jobq.enqueue('k', to_jsonb(n), 'line', concurrency_key => 'a', max_attempts => 2)
from generate_series(1, 2) as n;
select job_id as head from jobq.claim('{line}', 'w', 9) \gset
select jobq.fail(:'head', 1, 'x', retry_in => '1 h');
select is(pg_temp.claimed('line'), 0, 'what is behind a job that is tried again waits for it');
select results_eq(
    'select reason from jobq.explain((select job_id from jobq.job'
        ' where queue = ''line'' and state = ''queued'')) limit 1',
    '{ordered_behind}'::text[], 'explain says so'
);
select jobq.change_many('{"run_at": "2020-01-01"}', array[:'head']::uuid[]);
select results_eq(
    'select job_id from jobq.claim(''{line}'', ''w'', 9)', format('select %L::uuid', :'head'),
    'it goes first'
);
select jobq.fail(:'head', 2, 'x');
select is(pg_temp.claimed('line'), 0, 'a dead job holds its key where that was asked for');
select jobq.redrive(:'head');
select results_eq(
    'select job_id from jobq.claim(''{line}'', ''w'', 9)', format('select %L::uuid', :'head'),
    'until it is redriven'
);

select jobq.enqueue('k', queue => 'line', concurrency_key => 'b', max_attempts => 1);
select job_id as head from jobq.claim('{line}', 'w', 9) where attempt = 1 \gset
select jobq.fail(:'head', 1, 'x');
select pg_temp.claimed('line') as none, jobq_private.prune_limits(1000) as recent \gset
update jobq_private.limit_state set charged_at = charged_at - interval '5 min';
select jobq_private.prune_limits(1000) as old \gset
select jobq.enqueue('k', queue => 'line', run_at => now() - interval '1 h', concurrency_key => 'b');
select jobq.redrive(:'head');
select results_eq(
    'select job_id from jobq.claim(''{line}'', ''w'', 9)', format('select %L::uuid', :'head'),
    'also before a job that was added later'
);

-- What nobody told of
select jobq.put_queue('raw', key_max_running => 1);
select jobq.enqueue('k', queue => 'raw', concurrency_key => 'a') from generate_series(1, 2);
select pg_temp.claimed('raw') + pg_temp.claimed('raw');
set local role jobq_owner;
delete from jobq_private.job where queue = 'raw' and state = 'running';
reset role;
select is(pg_temp.claimed('raw'), 0, 'a key stays closed where a running job is deleted by raw SQL');
select count(*) as tasks from jobq.maintain() \gset
select is(pg_temp.claimed('raw'), 1, 'until maintain() opens it');

-- Rates that are raised, and clocks that are set back
create function pg_temp.set_rates(rate integer, period interval)
returns void
language sql
as $$
    select jobq.put_queue('each', key_rate_limit => rate, key_rate_period => period);
    select jobq.put_queue('all', rate_limit => rate, rate_period => period);
    select jobq.put_kind('each', key_rate_limit => rate, key_rate_period => period);
    select jobq.put_kind('all', rate_limit => rate, rate_period => period);
$$;

create function pg_temp.started()
returns integer
language sql
as $$
    select count(*)::integer
    from unnest('{each,all,kind each,kind all}'::text[]) as q (queue)
    cross join lateral (
        select from generate_series(1, 3) as n
        cross join lateral jobq.claim(array[q.queue], 'w' || n, 1)
        limit 1
    ) as c
$$;

select pg_temp.set_rates(1, '1 h');
select jobq.enqueue(
    case q when 'kind each' then 'each' when 'kind all' then 'all' else 'work' end,
    queue => q, concurrency_key => case when q ~ 'each' then 'a' end
)
from unnest('{each,all,kind each,kind all}'::text[]) as q, generate_series(1, 9);
select is(pg_temp.started(), 4, 'one starts of each');
select is(pg_temp.started(), 0, 'and no other for an hour');
select pg_temp.set_rates(1000000, '1 s');
select is(pg_temp.started(), 4, 'a rate that is raised counts from now on');
update jobq_private.limit_state set charged_at = clock_timestamp() + interval '5 h';
update jobq_private.waiting_key set open_at = '-infinity', state = 'open'
where state = 'later';
select is(pg_temp.started(), 4, 'a clock that is set back holds nothing up for longer than a burst');

-- What has expired
select jobq.put_queue('late', key_rate_limit => 1, key_rate_period => '1 h');
select jobq.enqueue('k', queue => 'late', concurrency_key => 'a') from generate_series(1, 2);
update jobq_private.job set expires_at = clock_timestamp()
where job_id = (select min(job_id::text)::uuid from jobq.job where queue = 'late');
select is(pg_temp.claimed('late', 1), 0, 'a job that has expired does not start');
select is(pg_temp.claimed('late', 1), 1, 'nor is its key charged for it');

select * from finish();
rollback;
