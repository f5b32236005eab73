-- What jobq.put_kind() promises; settings.sql shows what its settings do.
-- Needs more than the core.
begin;
select plan(72);

select lives_ok(
    'select jobq.put_kind(''plain'')', 'a kind may be declared with nothing else'
);
select lives_ok(
    $$
    select jobq.put_kind('full', 'q', 1, 2, '3 s', '4 s', 'delivery', 'linear', '5 s',
        '6 s',
        0.5, 'replace', true, '{"type": "object"}')
    $$,
    'or with everything'
);
select results_eq(
    $$
    select queue, priority::integer, max_attempts, timeout, lease, retry_preset,
        retry_strategy, retry_initial_delay, retry_max_delay, retry_jitter, dedup,
        reuse_key_after_failure, payload_schema
    from jobq_private.kind where kind = 'full'
    $$,
    $$
    values ('q', 1, 2, interval '3 s', interval '4 s', 'delivery', 'linear',
        interval '5 s',
        interval '6 s', 0.5::double precision, 'replace', true,
        '{"type": "object"}'::jsonb)
    $$,
    'which is stored'
);
select jobq.put_kind('full', max_attempts => 7);
select results_eq(
    'select queue, max_attempts, payload_schema from jobq_private.kind
    where kind = ''full''',
    'values (null::text, 7, null::jsonb)',
    'declaring again replaces everything'
);
select is(
    refusal('select jobq.put_kind(' || a.arguments || ')'), a.refusal,
    format('put_kind(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('null', '22004 NULL_ARGUMENT'),
    ('''''', '22023 INVALID_ARGUMENT'),
    ('repeat(''k'', 128)', 'none'),
    ('repeat(''k'', 129)', '22023 INVALID_ARGUMENT'),
    ('''k'', queue => ''''', '22023 INVALID_ARGUMENT'), ('''k'', queue => ''*''', '22023 INVALID_ARGUMENT'),
    ('''k'', queue => repeat(''q'', 129)', '22023 INVALID_ARGUMENT'),
    ('''k'', priority => 32767', 'none'),
    ('''k'', priority => 32768', '22023 INVALID_ARGUMENT'),
    ('''k'', max_attempts => 0', '22023 INVALID_ARGUMENT'),
    ('''k'', max_attempts => 10001', '22023 INVALID_ARGUMENT'),
    ('''k'', timeout => ''0''', '22023 INVALID_ARGUMENT'),
    ('''k'', timeout => ''366 days''', '22023 INVALID_ARGUMENT'),
    ('''k'', lease => ''0.9 s''', '22023 INVALID_ARGUMENT'),
    ('''k'', lease => ''25 h''', '22023 INVALID_ARGUMENT'),
    ('''k'', retry_preset => ''never''', '22023 INVALID_ARGUMENT'),
    ('''k'', retry_strategy => ''cubic''', '22023 INVALID_ARGUMENT'),
    ('''k'', retry_initial_delay => ''-1 s''', '22023 INVALID_ARGUMENT'),
    ('''k'', retry_max_delay => ''-1 s''', '22023 INVALID_ARGUMENT'),
    ('''k'', retry_max_delay => ''365 days''', 'none'),
    ('''k'', retry_max_delay => ''366 days''', '22023 INVALID_ARGUMENT'),
    ('''k'', retry_initial_delay => ''1 year''', '22023 INVALID_ARGUMENT'),
    ('''k'', retry_jitter => 1.01', '22023 INVALID_ARGUMENT'),
    ('''k'', retry_jitter => -0.01', '22023 INVALID_ARGUMENT'),
    ('''k'', retry_jitter => ''NaN''', '22023 INVALID_ARGUMENT'),
    ('''k'', dedup => ''drop''', '22023 INVALID_ARGUMENT')
) as a (arguments, refusal);

-- A kind that was accepted can always fail
select jobq.put_kind('slow', retry_strategy => 'fixed',
    retry_initial_delay => '365 days',
    retry_max_delay => '365 days', retry_jitter => 1);
select jobq.enqueue('slow') as slow \gset
select from jobq.claim_job(:'slow', 'w');
select is(
    jobq.fail(:'slow', 1, 'x'), 'retrying', 'the longest delays that are accepted work'
);
select jobq.put_kind('long', timeout => '365 days', lease => '1 day');
select jobq.enqueue('long') as long \gset
select from jobq.claim_job(:'long', 'w');
select is(
    (select h.outcome from jobq.heartbeat('w', array[:'long']::uuid[], '{1}') as h),
    'extended',
    'and so do the longest timeout and lease'
);

-- Payload schemas: no keyword is stored that is not enforced
select is(
    refusal(format('select jobq.put_kind(''s'', payload_schema => %L)',
        s.schema)),
    s.refusal, format('payload_schema %s: %s', left(s.schema, 80), s.refusal)
)
from (
    values
    ('{}', 'none'),
    ('{"type": ["object", "null"], "title": "t", "$schema": "x", "default": 1}',
        'none'),
    ('{"properties": {"a": {"items": {"enum": [1]}}}, "additionalProperties": true}',
        'none'),
    ('[]', 'JQ006 SCHEMA_INVALID'),
    ('true', 'JQ006 SCHEMA_INVALID'),
    ('null', 'JQ006 SCHEMA_INVALID'),
    ('{"type": "strnig"}', 'JQ006 SCHEMA_INVALID'),
    ('{"type": ["string", "date"]}', 'JQ006 SCHEMA_INVALID'),
    ('{"type": 1}', 'JQ006 SCHEMA_INVALID'),
    ('{"format": "email"}', 'JQ006 SCHEMA_INVALID'),
    ('{"$ref": "#/x"}', 'JQ006 SCHEMA_INVALID'),
    ('{"required": "to"}', 'JQ006 SCHEMA_INVALID'),
    ('{"required": [1]}', 'JQ006 SCHEMA_INVALID'),
    ('{"minLength": "3"}', 'JQ006 SCHEMA_INVALID'),
    ('{"minLength": 1.5}', 'JQ006 SCHEMA_INVALID'),
    ('{"maxLength": 1e20}', 'JQ006 SCHEMA_INVALID'),
    ('{"pattern": "("}', 'JQ006 SCHEMA_INVALID'),
    ('{"properties": {"a": 1}}', 'JQ006 SCHEMA_INVALID'),
    ('{"properties": {"a": {"b": {}}}}', 'JQ006 SCHEMA_INVALID'),
    ('{"items": {"type": "x"}}', 'JQ006 SCHEMA_INVALID'),
    ('{"items": [{}]}', 'JQ006 SCHEMA_INVALID'),
    ('{"additionalProperties": {}}', 'JQ006 SCHEMA_INVALID'),
    (format('{"enum": %s}', to_jsonb(array_fill(1, array[1000]))), 'none'),
    (format('{"enum": %s}', to_jsonb(array_fill(1, array[1001]))), 'JQ006 SCHEMA_INVALID')
) as s (schema, refusal);

-- The words of a refusal
select is(detail(format('select jobq.put_kind(''x'', %s)', s.said)), s.detail, s.said)
from (
    values
    ('timeout => ''0''', 'timeout must be from 1 ms to 365 days'),
    ('retry_preset => ''none''', 'retry_preset: standard, decorrelated, powers_of_two or delivery')
) as s (said, detail);
select is_empty(
    $$
    select c.conrelid::regclass, c.conname
    from pg_constraint as c
    where c.conrelid = any(array[
        'jobq_private.setting', 'jobq_private.queue', 'jobq_private.kind', 'jobq_private.key_limit',
        'jobq_private.endpoint', 'jobq_private.api_key'
    ]::regclass[])
    and (c.contype = 'c' or c.confrelid = 'jobq_private.retry_preset'::regclass)
    and c.conname !~ ' '
    $$,
    'every rule of a definition says in words what is wanted'
);

select is(
    detail('select jobq.put_kind(''crm'', concurrency_key => array[''c'', ''u'', ''s''])'),
    'concurrency_key must be a path of names: did you mean {cus}?',
    'a text that a client has split into characters is no path'
);
select is(
    refusal(format('select jobq.put_kind(''x'', %s => array_fill(%L::text, %L))', p.name, p.member, p.size)),
    '22023 INVALID_ARGUMENT', format('a path of a hundred thousand: %s, %s', p.name, p.member)
)
from (
    values
    ('concurrency_key', 'x', '{100000}'), ('concurrency_key', 'xy', '{100000}'),
    ('cost', 'x', '{100000}'), ('cost', 'xy', '{100000}'),
    ('dedup_key', 'x', '{100000}'), ('dedup_key', 'xy', '{100000,1}')
) as p (name, member, size);
select is(
    detail($$ select jobq.put_kind('crm', concurrency_key => '{nope}', payload_schema => '{
        "type": "object", "properties": {"customer": {"type": "string"}},
        "additionalProperties": false
    }') $$),
    'concurrency_key: payload_schema allows no member nope',
    'nor is one to a member that no payload may have'
);
select lives_ok(
    $$ select jobq.put_kind('crm', concurrency_key => '{customer}', payload_schema => '{
        "type": "object", "properties": {"customer": {"type": "string"}},
        "additionalProperties": false
    }') $$,
    'a path that the schema admits is taken'
);
select lives_ok(
    $$ select jobq.put_kind('crm', concurrency_key => '{a,b}', payload_schema => '{}') $$,
    'and any path where the schema says nothing'
);

-- Jobs that were made before anybody declared their kind
select jobq.enqueue('late', queue => 'late') as once, jobq.enqueue('later', queue => 'late') as often,
    jobq.enqueue('late', queue => 'late', max_attempts => 3) as given \gset
select jobq.put_kind('late', max_attempts => 1), jobq.put_kind('later', max_attempts => 7);
create temporary table failed as
select c.job_id, jobq.fail(c.job_id, c.attempt, 'x') as state
from jobq.claim('{late}', 'w', 9) as c;
select is(
    (select f.state from failed as f where f.job_id = :'once'), 'dead',
    'a job from before the kind was declared has as many attempts as the kind says'
);
select results_eq(
    format('select f.state, j.max_attempts from failed as f join jobq.job as j using (job_id) where job_id = %L', :'often'),
    $$ values ('retrying', 7) $$, 'also where it says more'
);
select is(
    (select f.state from failed as f where f.job_id = :'given'), 'retrying',
    'but what the call has said holds'
);

select * from finish();
rollback;
