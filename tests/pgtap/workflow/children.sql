-- What start_children() and call_children() promise.
begin;
select plan(40);

create function pg_temp.call(caller uuid, attempt integer, children jsonb)
returns text
language sql
as $$
    select c.outcome || coalesce(' ' || (
        select string_agg(e ->> 'state' || coalesce(':' || (e ->> 'result'), ''), ' ' order by n)
        from jsonb_array_elements(c.ends) with ordinality as a (e, n)
    ), '')
    from jobq.call_children(caller, attempt, children) as c
$$;
create function pg_temp.claim(of text)
returns uuid
language sql
as $$
    select c.job_id from jobq.claim('{default}', 'w', kinds => array[of]) as c
$$;

select jobq.enqueue('agent') as caller \gset
select pg_temp.claim('agent');
select is(
    pg_temp.call(:'caller', 1, '[{"name": "a", "kind": "tool", "payload": 1}]'), 'waiting',
    'the caller waits for the job that it has called'
);
select results_eq(
    format('select state collate "default", worker, attempts from jobq.job where job_id = %L', :'caller'),
    $$ values ('queued', null::text, 0) $$, 'and holds no worker'
);
select results_eq(
    'select kind, payload, state collate "default" from jobq.job where kind = ''tool''',
    $$ values ('tool', '1'::jsonb, 'queued') $$, 'the called job is enqueued'
);
select pg_temp.claim('tool') as child \gset
select jobq.complete(:'child', 1, '42');
select is(pg_temp.claim('agent'), :'caller', 'the end of the called job makes the caller due');
select is(
    pg_temp.call(:'caller', 2, '[{"name": "a", "kind": "tool", "payload": 1}]'),
    'arrived succeeded:42', 'which gets its result'
);
select is(
    (select count(*) from jobq.job where kind = 'tool'), 1::bigint, 'and calls it only once'
);
select results_eq(
    format('select name, value -> ''payload'' ->> ''result'' from jobq.list_steps(%L) order by name', :'caller'),
    format($$ values ('a', null), ('event:job_ended:%s', '42') $$, :'child'), 'both are recorded'
);

-- Several, of which one fails.
select is(
    pg_temp.call(:'caller', 2, '[{"name": "b", "kind": "left"}, {"name": "c", "kind": "right"}]'),
    'waiting', 'it waits for several'
);
select pg_temp.claim('left') as left_id \gset
select pg_temp.claim('right') as right_id \gset
select jobq.complete(:'left_id', 1);
select is(pg_temp.claim('agent'), null, 'until the last one');
select from jobq.fail(:'right_id', 1, 'no such page', 'NOT_THERE', false);
select pg_temp.claim('agent');
select is(
    pg_temp.call(:'caller', 3, '[{"name": "b", "kind": "left"}, {"name": "c", "kind": "right"}]'),
    'arrived succeeded dead', 'and gets the end of each, in its order'
);
select ok(
    (select ends -> 1 @> '{"error_code": "NOT_THERE", "error": "no such page"}'
    from jobq.call_children(:'caller', 3, '[{"name": "b"}, {"name": "c"}]')),
    'with the error of one that failed; a name is enough for what was called before'
);
select is(
    (select count(*) from jsonb_array_elements(
        jobq_internal.show_graph(:'caller') -> 'edges'
    )), 3::bigint, 'the graph shows what it has called'
);
select is_empty(
    format('select from jobq_internal.list_inputs(%L)', :'caller'), 'which are not its inputs'
);

-- A child that ends before the caller waits.
select child_id as early from jobq.start_children(
    :'caller', 3, '[{"name": "d", "kind": "early"}]'
) \gset
select is(pg_temp.claim('early'), :'early', 'a job is called without waiting');
select jobq.complete(:'early', 1, '"soon"');
select is(
    pg_temp.call(:'caller', 3, '[{"name": "d"}]'), 'arrived succeeded:soon',
    'and its end is not missed'
);

-- Who dies of a failed child, and is redriven, waits for it again.
select from jobq.fail(:'caller', 3, 'x', 'CHILD_FAILED', false);
select from jobq.redrive(:'right_id');
select from jobq.redrive(:'caller');
select pg_temp.claim('agent');
select is(
    pg_temp.call(:'caller', 4, '[{"name": "b"}, {"name": "c"}]'), 'waiting',
    'a redriven caller waits for a redriven child'
);
select pg_temp.claim('right');
select jobq.complete(:'right_id', 2, '7');
select pg_temp.claim('agent');
select is(
    pg_temp.call(:'caller', 5, '[{"name": "b"}, {"name": "c"}]'),
    'arrived succeeded succeeded:7', 'and gets its result'
);

-- Cancelling.
select from jobq.call_children(:'caller', 5, '[
    {"name": "e", "kind": "attached"}, {"name": "f", "kind": "started"},
    {"name": "g", "kind": "detached", "cancel": false}
]');
select pg_temp.claim('started') as started \gset
select is(jobq.cancel(:'caller'), 'cancelled', 'a caller that waits can be cancelled');
select jobq_private.resolve();
select results_eq(
    'select kind, state collate "default", cancel_requested_at is not null from jobq.job
    where kind in (''attached'', ''started'', ''detached'') order by kind',
    $$ values ('attached', 'cancelled', false), ('detached', 'queued', false),
    ('started', 'running', true) $$,
    'what it has called is cancelled too, unless it is detached'
);
select is(
    (select cancel_reason from jobq.job where kind = 'attached'), 'the job that called it was cancelled',
    'with a reason'
);

-- Many callers at once.
select jobq.enqueue('agent') as one, jobq.enqueue('agent') as two \gset
select from jobq.claim('{default}', 'w', 2, kinds => '{agent}');
select results_eq(
    format('select job_id, outcome from jobq_internal.call_many(
        array[%1$L, %2$L, %1$L]::uuid[], ''{1,1,7}'', ''[
            [{"name": "a", "kind": "first"}, {"name": "b", "kind": "second"}],
            [{"name": "a", "kind": "third"}], [{"name": "a", "kind": "lost"}]
        ]'')', :'one', :'two'),
    format('values (%1$L::uuid, ''waiting''), (%2$L, ''waiting''), (%1$L, ''lost'')', :'one', :'two'),
    'many jobs call others at once; a stale attempt calls none'
);
select results_eq(
    format('select name from jobq_internal.read_steps(array[%L, %L]::uuid[], ''{1,2}'')', :'one', :'two'),
    $$ select null where false $$, 'a waiting job reads no steps'
);
select jobq.complete(job_id, 1, '1')
from jobq.claim('{default}', 'w', 3, kinds => '{first,second,third}');
select results_eq(
    'select job_id, attempt from jobq.claim(''{default}'', ''w'', 9, kinds => ''{agent}'') order by 1',
    format('values (%L::uuid, 2), (%L::uuid, 2) order by 1', :'one', :'two'),
    'each is due once, after the last of its jobs'
);
select is(
    (select count(*) from jobq_internal.read_steps(array[:'one', :'two']::uuid[], '{2,2}') as s
    where s.value #>> '{payload,state}' = 'succeeded'), 3::bigint,
    'and finds the ends among its steps'
);
select results_eq(
    format('select outcome, jsonb_array_length(ends) from jobq_internal.call_many(
        array[%L]::uuid[], ''{2}'', ''[[{"name": "a"}, {"name": "b"}]]'')', :'one'),
    $$ values ('arrived', 2) $$, 'also if it calls again'
);
select is(
    (select count(*) from jobq_private.waiter where job_id in (:'one', :'two')), 0::bigint,
    'nobody waits any more'
);

-- Errors.
select jobq.enqueue('agent') as caller \gset
select pg_temp.claim('agent');
select is(
    refusal(format('select jobq.start_children(%L, 1, %L)', :'caller', c.children)),
    '22023 INVALID_ARGUMENT', c.claim
)
from (
    values
    ('{}', 'children are an array'),
    ('[]', 'at least one'),
    ('[{"kind": "a"}]', 'each has a name'),
    ('[{"name": "event:a", "kind": "a"}]', 'which is not that of an event'),
    ('[{"name": "a", "kind": "a"}, {"name": "a", "kind": "a"}]', 'and of its own'),
    ('[{"name": "a", "kind": "a", "idempotency_key": "a"}]', 'keys are refused'),
    ('[{"name": "a", "kind": "a", "cancel": 1}]', 'cancel is true or false')
) as c (children, claim);
select is(
    refusal(format('select jobq.start_children(%L, 2, ''[{"name": "a", "kind": "a"}]'')', :'caller')),
    'JQ003 LEASE_LOST', 'another attempt calls nothing'
);

-- Under grants by queue: of calls, a login decides those whose jobs it sees
create function pg_temp.due(of uuid)
returns boolean
language sql
return (select j.run_at <= clock_timestamp() from jobq_private.job as j where j.job_id = of);

select jobq.put_kind('mine.agent', queue => 'mine');
select jobq.enqueue('mine.agent') as mine \gset
select jobq.enqueue('mine.agent') as mixed \gset
select jobq.enqueue('mine.agent') as waits \gset
select jobq.enqueue('mine.agent') as ended \gset
select from jobq.claim('{mine}', 'w', 4);
select pg_temp.call(:'mine', 1, '[{"name": "a", "kind": "k", "queue": "mine"}]');
select pg_temp.call(:'mixed', 1, '[
    {"name": "a", "kind": "k", "queue": "mine"}, {"name": "b", "kind": "k", "queue": "theirs"}]');
select c.child_id as live from jobq.start_children(
    :'waits', 1, '[{"name": "a", "kind": "k", "queue": "theirs"}]') as c \gset
select jobq.start_children(:'ended', 1, '[{"name": "a", "kind": "over", "queue": "theirs"}]');
select from jobq_private.resolve();
create role with_mine login;
grant jobq_worker, jobq_operator to with_mine;
select jobq.grant_queue('with_mine', 'mine', 'work');
select jobq.enforce_queue_grants();
select jobq.complete(c.job_id, 1) from jobq.claim('{theirs}', 'w', 1, kinds => '{over}') as c;
update jobq_private.pending set created_at = now() - interval '1 s', due_at = '-infinity';
select from jobq_private.resolve();
set local session authorization with_mine;
select jobq.complete(c.job_id, 1) from jobq.claim('{mine}', 'w', 9, kinds => '{k}') as c;
reset session authorization;
update jobq_private.pending set created_at = now() - interval '1 s', due_at = '-infinity';
set local session authorization with_mine;
select from jobq.claim('{empty}', 'w');
reset session authorization;
select ok(pg_temp.due(:'mine'), 'a caller is due after the end of a job that the login sees');
select ok(not pg_temp.due(:'mixed'), 'but not while another one, which it does not see, is live');
set local session authorization with_mine;
select is(
    (select w.outcome from jobq.wait_any(:'waits', 1, 'first', array['job_ended:' || :'live']) as w),
    'waiting', 'a called job that a login does not see has not ended for it'
);
select is(
    pg_temp.call(:'ended', 1, '[{"name": "a", "kind": "over", "queue": "theirs"}]'), 'waiting',
    'nor one that has'
);
reset session authorization;
select jobq.complete(c.job_id, 1) from jobq.claim('{theirs}', 'w', 9, kinds => '{k}') as c;
update jobq_private.pending set created_at = now() - interval '1 s', due_at = '-infinity';
select from jobq_private.resolve();
select ok(pg_temp.due(:'mixed') and pg_temp.due(:'waits'), 'until a login that sees all looks at it');
select ok(pg_temp.due(:'ended'), 'also if it had ended before');

select * from finish();
rollback;
