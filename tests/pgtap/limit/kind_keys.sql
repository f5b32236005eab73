-- Limits that a kind puts on each of its keys, across queues, by one session;
-- tests/python/test_limits.py has many.
begin;
select plan(42);

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

create function pg_temp.reason(kind text, queue text)
returns text
language sql
as $$
    select e.reason
    from jobq.job as j
    cross join lateral jobq.explain(j.job_id) as e
    where j.kind = reason.kind and j.queue = reason.queue and j.state in ('queued', 'retrying')
    order by j.run_at, j.job_id
    limit 1
$$;

-- What is refused
select is(
    refusal(format('select jobq.put_kind(''k'', %s)', arguments)),
    '22023 INVALID_ARGUMENT', arguments
)
from unnest(array[
    'key_max_running => 0', 'key_max_running => -1', 'key_max_running => 32768',
    'key_rate_limit => 0', 'key_rate_limit => 1, key_rate_period => ''0''',
    'key_rate_burst => 1', 'on_dead => ''hold''', 'ordered => true, on_dead => ''stop'''
]) as arguments;

-- What runs
select jobq.put_kind('pair', key_max_running => 2);
select is(
    jobq.settings('pair') ->> 'kind_key_max_running', '2', 'settings shows what a kind says for each key'
);
select jobq.enqueue('pair', queue => q, concurrency_key => k)
from unnest('{x,y}'::text[]) as q, unnest('{a,b}'::text[]) as k, generate_series(1, 3);
select jobq.enqueue('pair', queue => 'x') from generate_series(1, 5);
select is(
    (
        select count(*)::integer from generate_series(1, 20) as n
        cross join lateral jobq.claim('{x,y}', 'w' || n, 1)
    ),
    9, 'of each key as many run as the kind says, in all queues, and any number without a key'
);
select is(
    (
        select count(*)::integer from jobq.job
        where state = 'running' and concurrency_key = 'a'
    ),
    2, 'whichever queue they are in'
);
select is(pg_temp.reason('pair', 'y'), 'key_busy', 'explain says so');
select is(jobq.due_in('{x,y}'), null, 'a worker need not look until one ends');
select is(
    (
        select count(*) from jobq.claim_job(
            (
                select job_id from jobq.job
                where state = 'queued' and concurrency_key = 'a' and queue = 'y' limit 1
            ),
            'w'
        )
    ),
    0::bigint, 'a claim of one job is bound too'
);
set local role jobq_owner;
select is(
    refusal('update jobq_private.job set state = ''running'''
        ' where queue = ''y'' and state = ''queued'''),
    'JQ011 LIMIT_REACHED', 'and the owner with raw SQL'
);
reset role;
select jobq.complete(job_id, attempt) from jobq.job
where state = 'running' and concurrency_key = 'a';
select is(
    pg_temp.claimed('y'), 2, 'the end of a job in one queue opens the key in the others'
);
select jobq.put_kind('pair', key_max_running => 3);
select is(pg_temp.claimed('x') + pg_temp.claimed('y'), 2, 'a higher limit holds at once');
select jobq.put_kind('pair');
select is(
    pg_temp.claimed('x') + pg_temp.claimed('y'), 4, 'and so does none'
);
select ok(
    not (jobq_private.enter_queue('x', now())).has_kind_limits, 'claims look for none then'
);
select jobq.put_kind('pair', key_max_running => 1);
select jobq.enqueue('pair', queue => 'x', concurrency_key => 'a');
select is(pg_temp.claimed('x'), 0, 'what started without a limit counts');

-- What was stored before the limit
select jobq.enqueue('old', queue => 'x', concurrency_key => 'a') from generate_series(1, 2);
select is(pg_temp.claimed('x', 1), 1, 'a kind without limits for each key');
select jobq.put_kind('old', key_max_running => 1);
select is_empty(
    $$
    select jobq.claim_job(j.job_id, 'w') from jobq.job as j
    where j.kind = 'old' and j.state = 'queued'
    $$,
    'its new limit also holds for a waiting job that is started by its id'
);
select is(pg_temp.claimed('x'), 0, 'and for claims');
select jobq.complete(job_id, attempt) from jobq.job where kind = 'old' and state = 'running';
select is(pg_temp.claimed('x'), 1, 'the end of a job from before it makes room at once');

-- With the limit of the queue
select jobq.put_queue('narrow', key_max_running => 1);
select jobq.put_kind('twin', key_max_running => 2);
select jobq.enqueue('twin', queue => q, concurrency_key => 'a')
from unnest('{narrow,wide}'::text[]) as q, generate_series(1, 3);
select jobq.enqueue('plain', queue => 'narrow', concurrency_key => 'a') from generate_series(1, 3);
select is(pg_temp.claimed('narrow'), 3, 'the limit of a kind stands for that of its queue');
select is(pg_temp.claimed('wide'), 0, 'in all queues; jobs of other kinds keep to that of the queue');

-- Rates
select jobq.put_kind(
    'call', key_rate_limit => 1, key_rate_period => '1 min', key_rate_burst => 2
);
select jobq.enqueue('call', queue => q, concurrency_key => k)
from unnest('{u,v}'::text[]) as q, unnest('{a,b}'::text[]) as k, generate_series(1, 3);
select is(
    pg_temp.claimed('u') + pg_temp.claimed('v') + pg_temp.claimed('u'), 4,
    'each key starts so many in a period, in all queues'
);
select is(pg_temp.reason('call', 'v'), 'rate_limited', 'explain says so');
select ok(jobq.due_in('{v}') between '50 s' and '1 min', 'a worker knows when the next may start');

-- Order
select jobq.put_kind('order', ordered => true, on_dead => 'hold');
select jobq.enqueue('order', to_jsonb(n), 'line', concurrency_key => 'a', max_attempts => 2)
from generate_series(1, 3) as n;
select jobq.enqueue('order', queue => 'other line', concurrency_key => 'a');
select job_id as head from jobq.claim('{line}', 'w', 9) \gset
select jobq.fail(:'head', 1, 'x', retry_in => '1 h');
select is(
    pg_temp.claimed('line') + pg_temp.claimed('other line'), 0,
    'what is behind a job that is tried again waits for it, in all queues'
);
select is(pg_temp.reason('order', 'other line'), 'ordered_behind', 'explain says so');
select jobq.change_many('{"run_at": "2030-01-01"}', array[:'head']::uuid[]);
select is(pg_temp.claimed('line'), 0, 'however long');
select jobq.change_many('{"run_at": "2020-01-01"}', array[:'head']::uuid[]);
select results_eq(
    'select job_id from jobq.claim(''{line}'', ''w'', 9)', format('select %L::uuid', :'head'),
    'it goes first'
);
select jobq.fail(:'head', 2, 'x');
select is(pg_temp.claimed('line'), 0, 'a dead job holds its key in its queue');
select jobq.redrive(:'head');
select results_eq(
    'select job_id from jobq.claim(''{line}'', ''w'', 9)', format('select %L::uuid', :'head'),
    'until it is redriven'
);
select jobq.fail(:'head', 3, 'x', retry_in => '1 h');
select is(pg_temp.claimed('line'), 0, 'and waits again');
select jobq.cancel(:'head', 'enough');
select is(pg_temp.claimed('line'), 1, 'one that is cancelled is waited for no more');

-- Who waits for nobody
select jobq.put_kind('single', key_max_running => 1);
select jobq.enqueue('single', queue => 'full', concurrency_key => 'a');
select is(pg_temp.claimed('full'), 1, 'a key with all that may run');
select jobq.enqueue('single', queue => 'behind', concurrency_key => 'a');
select jobq.enqueue('work', queue => 'behind', concurrency_key => 'a');
select is(pg_temp.claimed('behind'), 1, 'keeps up no job of another kind');

-- What nobody waits for
select jobq.put_kind('brief', key_max_running => 1);
select jobq.enqueue('brief', queue => 'brief', concurrency_key => 'a');
select is(pg_temp.claimed('brief'), 1, 'a key with one job');
select pg_temp.finish('brief');
select pg_temp.claimed('brief');
update jobq_private.limit_state set charged_at = charged_at - interval '1 hour';
select count(*) as tasks from jobq.maintain() \gset
select is_empty(
    $$
    select g.limit_id from jobq_private.limit_state as g
    where g.limit_id = jobq_private.limit_id(null, 'brief', 'a')
    $$,
    'maintenance forgets the limit of a key for which nothing waits'
);

-- What a claim finds behind jobs that it moves
select jobq.enqueue('turned', queue => 'mixed') from generate_series(1, 3);
select jobq.enqueue('plain', queue => 'mixed') from generate_series(1, 9);
select jobq.put_kind('turned', max_running => 1);
create temporary table started as
select c.* from generate_series(1, 6) as n
cross join lateral jobq.claim('{mixed}', 'w' || n, 1) as c;
select results_eq(
    $$ select s.job_id from started as s where s.kind = 'plain' $$,
    $$
    select j.job_id from jobq.job as j
    where j.queue = 'mixed' and j.kind = 'plain'
    -- by chance, no claim may have taken the one limited job
    order by j.job_id limit (select count(*) from started as s where s.kind = 'plain')
    $$,
    'the next claim begins at the jobs that one has found and not started'
);

select * from finish();
rollback;
