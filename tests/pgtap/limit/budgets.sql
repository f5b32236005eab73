-- Budgets of queues, kinds and keys, by one session.
begin;
select plan(65);

create function pg_temp.claimed(queue text, jobs integer default 9)
returns integer
language sql
as $$
    select count(*)::integer from jobq.claim(array[queue], 'w', jobs)
$$;

create function pg_temp.fill(queue text, costs numeric[])
returns void
language sql
as $$
    select jobq.enqueue(
        case when queue ~ 'kind' then queue else 'plain' end, queue => queue, cost => c,
        concurrency_key => case when queue ~ 'key' then 'a' end
    )
    from unnest(costs) as c
$$;

create function pg_temp.put(queue text, amount numeric, period text default 'day')
returns void
language sql
as $$
    select jobq.put_budget(
        case when queue ~ 'kind' then 'kind' else 'queue' end, queue, amount, period,
        each_key => queue ~ 'key'
    )
$$;

-- A day passes.
create function pg_temp.pass_day()
returns void
language sql
as $$
    select jobq.complete(j.job_id, j.attempt) from jobq.job as j where j.state = 'running';
    update jobq_private.limit_state set charged_at = charged_at - interval '1 day',
        next_until = next_until - interval '1 day';
    update jobq_private.waiting_key set open_at = open_at - interval '1 day' where open_at > '-infinity';
$$;

create temporary table scope as
select q from unnest('{queue,kind,queue key,kind key}'::text[]) as q;

-- What is refused
select is(refusal(format('select jobq.put_budget(%s)', arguments)), expected, arguments)
from (
    values
    ('''queue'', ''q'', -1', '22023 INVALID_ARGUMENT'),
    ('''queue'', ''q'', ''NaN''', '22023 INVALID_ARGUMENT'),
    ('''queue'', ''q'', ''infinity''', '22023 INVALID_ARGUMENT'),
    ('''queue'', ''q'', 5, ''year''', '22023 INVALID_ARGUMENT'),
    ('''queue'', ''*'', 5', '22023 INVALID_ARGUMENT'),
    ('''worker'', ''q'', 5', '22023 INVALID_ARGUMENT'),
    ('''queue'', ''q'', 5, concurrency_key => ''''', '22023 INVALID_ARGUMENT'),
    ('''queue'', ''q'', 5, concurrency_key => ''a'', each_key => true', '22023 INVALID_ARGUMENT'),
    ('''kind'', ''q'', 5, concurrency_key => ''a''', '22023 INVALID_ARGUMENT'),
    ('''queue'', ''q'', 5, ''day'', ''Mars/Olympus''', 'JQ009 INVALID_TIME_ZONE'),
    ('''kind'', ''nobody declared'', 5', 'JQ007 KIND_NOT_FOUND'),
    ('''queue'', null, 5', '22004 NULL_ARGUMENT'),
    ('''queue'', ''q'', 5, null', '22004 NULL_ARGUMENT')
) as e (arguments, expected);

-- Each scope
select jobq.put_kind(q) from scope where q ~ 'kind';
select pg_temp.put(q, 100) from scope;
select pg_temp.fill(q, '{40,40,40,10}') from scope;
select is(pg_temp.claimed(q), 2, q || ': jobs start that fit into the budget') from scope;
select is(pg_temp.claimed(q), 0, q || ': and none after one that does not, however cheap') from scope;
select ok(jobq.due_in(array[q]) between '0 s' and '1 day', q || ': a worker sleeps until the next period')
from scope;
select ok(
    exists (
        select from jobq.job as j cross join lateral jobq.explain(j.job_id) as e
        where j.queue = q and j.state = 'queued' and e.reason = 'budget'
        and e.explanation ~ '80 of 100 reserved or spent, this job costs 40; the next period begins at'
    ),
    q || ': explain says budget, with the amounts'
)
from scope;
select is(
    refusal(format(
        'update jobq_private.job set state = ''running'' where queue = %L and state = ''queued'' and cost = 40', q
    )),
    'JQ011 LIMIT_REACHED', q || ': nobody else starts it'
)
from scope;
select pg_temp.put(q, 125) from scope;
select is(pg_temp.claimed(q), 1, q || ': more starts when the budget is raised') from scope;
select jobq.spend(j.job_id, j.attempt, 5) from jobq.job as j
where j.state = 'running' and j.job_id in (
    select min(o.job_id::text)::uuid from jobq.job as o where o.state = 'running' group by o.queue
);
select is(pg_temp.claimed(q), 1, q || ': or when a job has cost less') from scope;
select pg_temp.fill(q, '{120}') from scope;
select is(pg_temp.claimed(q), 0, q || ': the rest waits') from scope;
select pg_temp.pass_day();
select is(pg_temp.claimed(q), 1, q || ': for the next period') from scope;

-- Lists
select results_eq(
    $$
    select b.scope_type, b.scope, b.concurrency_key, b.each_key, b.amount, b.period, b.spent, b.reserved
    from jobq_internal.list_budgets() as b
    $$,
    $$
    values
    ('kind', 'kind', null, false, 125::numeric, 'day', 120::numeric, 120::numeric),
    ('kind', 'kind key', null, true, 125, 'day', null, null),
    ('kind', 'kind key', 'a', true, 125, 'day', 120, 120),
    ('queue', 'queue', null, false, 125, 'day', 120, 120),
    ('queue', 'queue key', null, true, 125, 'day', null, null),
    ('queue', 'queue key', 'a', true, 125, 'day', 120, 120)
    $$,
    'the list has what is spent and reserved'
);
select is((select count(*)::integer from jobq_internal.list_budgets('kind', 'kind')), 1, 'of one scope too');

-- A job that does not fit and goes away
select pg_temp.put('queue', 10, 'month');
select pg_temp.put('kind', 10, 'month');
update jobq_private.limit_state set charged_at = charged_at - interval '2 months';
select pg_temp.fill(q, '{20,3}') from unnest('{queue,kind}'::text[]) as q;
select is(pg_temp.claimed(q), 0, q || ': a job that is dearer than the budget never starts')
from unnest('{queue,kind}'::text[]) as q;
select jobq.cancel(j.job_id, 'too dear') from jobq.job as j where j.cost = 20 and j.state = 'queued';
update jobq_private.limit_state set next_until = next_until - interval '10 s';
select is(pg_temp.claimed(q), 1, q || ': those behind it start 10 s after it was cancelled')
from unnest('{queue,kind}'::text[]) as q;

-- A claim that starts nothing
select pg_temp.put('idle', 100);
select pg_temp.fill('idle', '{80}');
select pg_temp.claimed('idle') as started \gset
select pg_temp.fill('idle', '{50}');
select pg_temp.claimed('idle') as started \gset
select is(
    (select b.spent from jobq_internal.list_budgets('queue', 'idle') as b), 80::numeric,
    'a claim that starts nothing leaves what is spent'
);

-- One key
select jobq.put_budget('queue', 'queue key', 7, 'month', concurrency_key => 'b');
select jobq.enqueue('plain', queue => 'queue key', concurrency_key => 'b', cost => 4)
from generate_series(1, 2) \g /dev/null
select is(pg_temp.claimed('queue key'), 1, 'one key has a budget of its own');
select jobq.put_budget('queue', 'queue key', null, concurrency_key => 'b');
select is(pg_temp.claimed('queue key'), 1, 'until it is taken away');

-- Periods
select is(
    array[p.start_at, p.end_at], expected, why
)
from (
    values
    (row(1, 'day', 'Europe/Berlin')::jobq_private.budget, timestamptz '2026-03-29 12:00+02',
        array['2026-03-29 00:00+01', '2026-03-30 00:00+02']::timestamptz[], 'a day of 23 hours'),
    (row(1, 'week', 'UTC')::jobq_private.budget, '2026-11-25 12:00Z', '{2026-11-23Z,2026-11-30Z}', 'a week from Monday'),
    (row(1, 'month', 'America/New_York')::jobq_private.budget, '2026-12-01 04:00Z',
        '{2026-11-01 00:00-04,2026-12-01 00:00-05}', 'a month of another zone')
) as e (b, at, expected, why)
cross join lateral jobq_private.budget_period(b, at) as p;

-- What never fits
select jobq.put_queue('small');
select jobq.put_budget('queue', 'small', 100, 'day');
select jobq.enqueue('k', queue => 'small', cost => 140) as dear \gset
select ok(
    (
        select e.explanation ~ 'this job costs 140; raise the budget, or cancel the job$'
        from jobq.explain(:'dear') as e
        where e.reason = 'budget'
    ),
    'explain says of a job that it costs more than its whole budget'
);
select jobq.enqueue('k', queue => 'small', cost => 1) as cheap \gset
select jobq.enqueue('k', queue => 'small', concurrency_key => 'a', cost => 140) as dear_key,
    jobq.enqueue('k', queue => 'small', concurrency_key => 'a', cost => 1) as cheap_key \gset
select from jobq.heartbeat('w', '{}', '{}', '{small}');
select results_eq(
    format('select e.reason, e.explanation from jobq.explain(%L) as e', c.job_id),
    format(
        $$
        values
        ('budget', 'job %s goes first: queue small: 0 of 100 reserved or spent, it costs 140; raise the budget, or cancel the job'),
        ('waiting', '1 job is ahead of it in queue small%s')
        $$, c.behind, c.place
    ),
    'and of a cheaper one which job it waits for'
)
from (
    values (:'cheap', :'dear', ''), (:'cheap_key', :'dear_key', ', concurrency_key a')
) as c (job_id, behind, place);
update jobq_private.job set priority = 1 where job_id = :'cheap_key';
select is(
    (select array_agg(e.explanation) from jobq.explain(:'cheap_key') as e),
    '{"no job is ahead of it in queue small, concurrency_key a"}',
    'but not of one with a higher priority in its key'
);

select * from finish();
rollback;
