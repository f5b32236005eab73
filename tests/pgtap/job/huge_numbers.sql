-- What no reader of JSON can hold never reaches one, and no batch takes all locks.
begin;
select plan(12);

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

select is(jobq_private.has_huge_number(a.value), a.is_huge, left(a.value::text, 40))
from (
    values
    ('1e131071'::jsonb, true),
    ('[{"a": [-1e309]}]', true),
    ('1.7e308', false),
    ('1e-16383', false),
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
