-- Concurrency keys and their limits, by one session; tests/python/test_limits.py has many.
begin;
select plan(30);

-- Keys
select jobq.put_kind('path', concurrency_key => '{a,b}');
select jobq.enqueue('path', p)
from unnest(array[
    '{"a": {"b": "x"}}', '{"a": {"b": 7}}', '{"a": {"b": null}}', '{}', '[1]'
]::jsonb[]) as p;
select results_eq(
    'select payload, concurrency_key from jobq.job where kind = ''path'' order by job_id',
    $$
    values
    ('{"a": {"b": "x"}}'::jsonb, 'x'), ('{"a": {"b": 7}}', '7'),
    ('{"a": {"b": null}}', null), ('{}', null), ('[1]', null)
    $$,
    'a kind takes the key from the payload; a path that names nothing means none'
);
select jobq.enqueue('path', '{"a": {"b": "x"}}', concurrency_key => 'given') as given \gset
select is(
    (select concurrency_key from jobq.get_job(:'given')),
    'given', 'a key that is given goes before the path'
);
select is(
    refusal('select jobq.enqueue(''path'', ''{"a": {"b": {}}}'')'),
    'JQ006 PAYLOAD_INVALID', 'an object is no key'
);
select is(
    refusal($$select * from jobq.enqueue_many(
        '[{"kind": "path"}, {"kind": "path", "payload": {"a": {"b": [1]}}}]')$$),
    'JQ006 PAYLOAD_INVALID', 'nor is an array, in a batch either'
);
select is(
    refusal(format('select jobq.enqueue(''k'', concurrency_key => %L)', k)),
    '22023 INVALID_ARGUMENT', 'a key has 1 to 1024 bytes'
)
from unnest(array['', repeat('x', 1025), repeat('é', 513)]) as k;
select is(
    refusal('select jobq.enqueue(''path'', ''{"a": {"b": ""}}'')'),
    'JQ006 PAYLOAD_INVALID', 'also in the payload'
);
select jobq.enqueue('k', queue => 'odd', concurrency_key => E'a\x01''; drop table x; --') as odd
\gset
select is(
    (select concurrency_key from jobq.get_job(:'odd')),
    E'a\x01''; drop table x; --', 'hostile text is a key like any other'
);
select is(
    (select count(*) from jobq.claim('{odd}', 'w', 5)), 1::bigint, 'and its job is claimed'
);
set local role jobq_owner;
select is(
    refusal('update jobq_private.job set concurrency_key = ''other'''
        ' where concurrency_key = ''given'''),
    'JQ002 IMMUTABLE', 'a key never changes'
);
reset role;

-- Limits
select is(
    refusal(format('select jobq.put_queue(''q'', key_max_running => %s)', n)),
    '22023 INVALID_ARGUMENT', 'a limit is from 1 to 32767'
)
from unnest(array[0, -1, 32768]) as n;
select is(
    refusal(format('select jobq.put_limit(''q'', ''k'', %s)', n)),
    '22023 INVALID_ARGUMENT', 'of a key too'
)
from unnest(array[0, 32768]) as n;
select is(
    refusal('select jobq.put_limit(''*'', ''k'', 1)'), '22023 INVALID_ARGUMENT',
    'a limit belongs to one queue'
);
select is(
    refusal('select jobq.put_limit(''q'', null, 1)'), '22004 NULL_ARGUMENT',
    'a limit belongs to a key'
);
select jobq.put_limit('q', 'k', 2), jobq.put_budget('queue', 'q', 5, concurrency_key => 'k');
select jobq.put_limit('q', 'k');
select is(
    (select count(*) from jobq_internal.list_limits('q')), 0::bigint,
    'a limit of a key without limits is removed'
);
select is(
    (select amount from jobq_internal.list_budgets('queue', 'q')), 5::numeric,
    'the budget of the key stays'
);
select jobq.put_budget('queue', 'q', concurrency_key => 'k');
select is(
    (select count(*) from jobq_internal.list_budgets('queue', 'q')), 0::bigint,
    'until it is removed, too'
);
select jobq.put_queue('one', key_max_running => 1);
select jobq.enqueue('k', queue => 'one', concurrency_key => 'a') from generate_series(1, 3);
select is(
    (select count(*) from jobq.claim('{one}', 'w', 5)), 1::bigint,
    'a claim takes no more than may run'
);
select is(
    (
        select count(*) from jobq.claim_job(
            (select job_id from jobq.job where queue = 'one' and state = 'queued' limit 1), 'w'
        )
    ),
    0::bigint, 'a claim of one job neither'
);
set local role jobq_owner;
select is(
    refusal('update jobq_private.job set state = ''running'''
        ' where queue = ''one'' and state = ''queued'''),
    'JQ011 LIMIT_REACHED', 'nor the owner by raw SQL'
);
select is(
    refusal('update jobq_private.job set state = ''running'', slot = 2'
        ' where queue = ''one'' and state = ''queued'''),
    'JQ011 LIMIT_REACHED', 'with a slot of his own making either'
);
reset role;
select jobq.put_limit('one', 'a', 2);
select is(
    (select count(*) from jobq.claim('{one}', 'w', 5)), 1::bigint,
    'the limit of a key goes before its queue''s'
);
select results_eq(
    'select queue, concurrency_key, max_running, running from jobq_internal.list_limits(''one'')',
    $$values ('one', 'a', 2, 2::bigint)$$, 'and is listed with what runs'
);
select is(
    (
        select count(distinct jobq_private.limit_id(q, d, k))
        from (
            values ('a', null, 'bc'), ('ab', null, 'c'), ('a', null, 'b:c'), ('1:a', null, 'bc'),
            (null, 'a', 'bc'), ('a', 'bc', null), ('a', null, null), (null, 'a', null),
            ('a', 'b', 'c')
        ) as l (q, d, k)
    ),
    9::bigint, 'no two scopes share a limit'
);

-- A change of a waiting job changes its key
select jobq.enqueue('k', queue => 'from', concurrency_key => 'a') as moved \gset
select jobq.change_many('{"queue": "to", "priority": 3}', array[:'moved']::uuid[]);
select is(
    (select c.job_id from jobq.claim('{to}', 'w', 1) as c), :'moved',
    'a job that is moved is claimed in its new queue'
);

-- The audit tells what was given
select jobq.put_limit('told', 'a', 3);
select jobq.put_limit('told', 'b', rate_limit => 5);
select results_eq(
    $$select a.reason from jobq.audit as a where a.subject like 'told %' order by a.subject$$,
    array['max_running 3', 'rate_limit 5 in 00:00:01'], 'the audit says which limits were put'
);

select * from finish();
rollback;
