-- What no reader of JSON can hold never reaches one, no text of more than a gigabyte is made of
-- Needs more than the core.
-- numbers, and no batch takes all locks.
begin;
select plan(35);

create function pg_temp.refusal(statement text)
returns text
language plpgsql
as $$
declare
    _code text;
begin
    execute statement;
    return 'taken';
exception
    when others then
        get stacked diagnostics _code = constraint_name;
        return concat_ws(' ', sqlstate, _code);
end
$$;

select is(
    (jobq_private.value_problem(a.value, 1000000000, 64))[1] is not distinct from 'PAYLOAD_INVALID',
    coalesce(a.is_huge, false), left(a.value::text, 40)
)
from (
    values
    ('1e131071'::jsonb, true),
    ('[{"a": [-1e309]}]', true),
    ('1.7e308', false),
    ('[5e-324, -5e-324, 0, 0.0, 0e-300]', false),
    ('1e-16383', true),
    ('{"a": -1e-400}', true),
    ('[0e-16383]', true),
    (to_jsonb(array_fill(0, array[1000])) || '[0e-16383]', true),
    (to_jsonb(array_fill(0, array[1000])), false),
    (to_jsonb(repeat('9', 400)), false),
    (null, false)
) as a (value, is_huge);

select is(
    pg_temp.refusal(a.statement), a.refusal, format('%s: %s', a.refusal, a.statement)
)
from (
    values
    ('select jobq.enqueue(''x'', ''{"n": 1e131071}'')', 'JQ006 PAYLOAD_INVALID'),
    ('select jobq.enqueue(''x'', metadata => ''{"n": -1e400}'')', 'JQ006 PAYLOAD_INVALID'),
    (
        'select jobq.complete_many(array[gen_random_uuid()], ''{1}'', ''[1e400]'')',
        'JQ006 PAYLOAD_INVALID'
    ),
    (
        'select jobq.set_progress(gen_random_uuid(), 1, ''1e400'')',
        'JQ006 PAYLOAD_INVALID'
    ),
    ('select jobq.claim(''{{a},{b}}'', ''w'')', '22023 INVALID_ARGUMENT')
) as a (statement, refusal);

-- 70,000 numbers, of which each is 16,385 characters as text
select format('[%s0e-16383]', repeat('1e-16383,', 69999)) as many \gset
select is(
    pg_temp.refusal(format('select jobq.%s', replace(a.call, '$', quote_literal(:'many') || '::jsonb'))),
    a.refusal, format('a gigabyte of text is not made: %s', a.call)
) -- 14 cases
from (
    values
    ('enqueue(''x'', $)', 'JQ006 PAYLOAD_INVALID'),
    ('enqueue(''x'', run_at => now(), metadata => jsonb_build_object(''a'', $))', 'JQ006 PAYLOAD_INVALID'),
    ('enqueue_many(jsonb_build_array(jsonb_build_object(''kind'', ''x'', ''payload'', $)))', 'JQ006 PAYLOAD_INVALID'),
    ('enqueue_graph(jsonb_build_object(''jobs'', jsonb_build_array(jsonb_build_object(
        ''name'', ''a'', ''kind'', ''x'', ''payload'', $))))', 'JQ006 PAYLOAD_INVALID'),
    ('create_schedule(''s'', ''x'', every => ''1 h'', payload => $)', 'JQ006 PAYLOAD_INVALID'),
    ('emit(''e'', $)', 'JQ006 PAYLOAD_INVALID'),
    ('save_step(gen_random_uuid(), 1, ''s'', $)', 'JQ006 PAYLOAD_INVALID'),
    ('complete(gen_random_uuid(), 1, $)', 'JQ006 PAYLOAD_INVALID'),
    ('fail(gen_random_uuid(), 1, ''e'', details => jsonb_build_object(''a'', $))', 'JQ001 JOB_NOT_FOUND'),
    ('set_progress(gen_random_uuid(), 1, $)', 'JQ006 PAYLOAD_INVALID'),
    ('put_config(''c'', jsonb_build_object(''a'', $))', '22023 INVALID_ARGUMENT'),
    ('put_endpoint(''e'', ''HTTP'', jsonb_build_object(''url'', ''https://a.example'', ''body_template'', $))',
        '22023 INVALID_ARGUMENT'),
    ('put_payload_spec(''p'', jsonb_build_object(''const'', $))', 'JQ006 SCHEMA_INVALID'),
    ('put_kind(''x'', payload_schema => jsonb_build_object(''enum'', $))', 'JQ006 SCHEMA_INVALID')
) as a (call, refusal);
-- 7,000 numbers that a table holds in less than 2,000 bytes, compressed: as text 900 MB
create temporary table stored as
select format('[%s0]', repeat('1e131071,', 7000))::jsonb as value;
select cmp_ok(pg_column_size(s.value), '<', 2000, 'a compressed value is short') from stored as s;
set local statement_timeout = '10s';
select is(
    pg_temp.refusal(format('select jobq.%s from stored as s', a.call)),
    'JQ006 PAYLOAD_INVALID', format('nor of a compressed value: %s', a.call)
)
from (
    values
    ('enqueue(''x'', s.value)'),
    ('enqueue(''x'', s.value, priority => 1)')
) as a (call);
reset statement_timeout;
select is(
    pg_temp.refusal('select jobq.put_config(''c'', jsonb_build_object(''a'', repeat(''x'', 1048577)))'),
    '22023 INVALID_ARGUMENT', 'a config has at most 1 MiB'
);

select jobq.enqueue_many(
    (
        select jsonb_agg(jsonb_build_object('kind', 'x', 'queue', 'many' || n))
        from generate_series(1, 20000) as n
    )
) \g /dev/null
select cmp_ok(
    (
        select count(*) from pg_catalog.pg_locks as l
        where l.locktype = 'advisory' and l.pid = pg_backend_pid()
    ),
    '<=', 1024::bigint, 'a batch for 20,000 queues holds no more locks than there are'
);

select * from finish();
rollback;
