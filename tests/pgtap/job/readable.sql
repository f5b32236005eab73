-- What no client could read is refused, or left out of a failure, wherever it comes from.
-- Needs more than the core.
begin;
select plan(25);

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
create function pg_temp.deep(levels integer)
returns jsonb
language sql
as $$ select (repeat('{"a":', levels) || '1' || repeat('}', levels))::jsonb $$;

select is(
    pg_temp.refusal(format('select jobq.enqueue(''x'', run_at => %L)', a.run_at)),
    a.refusal, format('run_at => %s: %s', a.run_at, a.refusal)
)
from (
    values
    ('0044-03-15 BC', '22023 INVALID_ARGUMENT'),
    ('200000-01-01', '22023 INVALID_ARGUMENT'),
    ('infinity', '22023 INVALID_ARGUMENT'),
    ('-infinity', '22023 INVALID_ARGUMENT'),
    ('9999-12-31 00:00+00', '22023 INVALID_ARGUMENT'),
    ('0001-01-03 00:00+00', 'taken'),
    ('9999-12-29 00:00+00', 'taken')
) as a (run_at, refusal);
select is(
    pg_temp.refusal($$
        select jobq.enqueue_many('[{"kind": "x", "run_at": "0044-03-15 BC"}]')
    $$),
    '22023 INVALID_ARGUMENT', 'in a batch too'
);
select is(
    pg_temp.refusal($$
        select jobq.release_many(array[gen_random_uuid()], '{1}', '20000-01-01')
    $$),
    '22023 INVALID_ARGUMENT', 'no job is put off for so long'
);
select jobq.enqueue('x') as waiting \gset
select throws_ok(
    format(
        'update jobq.job set state = ''cancelled'', run_at = ''20000-01-01'' where job_id = %L',
        :'waiting'
    ),
    '23514', null, 'and none through the view'
);
select throws_ok(
    format('update jobq_private.job set run_at = ''infinity'' where job_id = %L', :'waiting'),
    '23514', null, 'nor in the table'
);

select is(
    pg_temp.refusal(format(a.statement, pg_temp.deep(3000))), 'JQ006 PAYLOAD_TOO_DEEP',
    a.statement
)
from (
    values
    ('select jobq.enqueue(''x'', payload => %L)'),
    ('select jobq.enqueue(''x'', metadata => %L)'),
    ('select jobq.enqueue_many(jsonb_build_array('
        || 'jsonb_build_object(''kind'', ''x'', ''metadata'', %L::jsonb)))'),
    ('select jobq.complete(gen_random_uuid(), 1, %L)'),
    ('select jobq.set_progress(gen_random_uuid(), 1, %L)')
) as a (statement);
select is(
    pg_temp.refusal(format('select jobq.enqueue(''x'', metadata => %L)', pg_temp.deep(63))),
    'taken', 'what is as deep as the limit is taken'
);

-- Details are left out rather than the failure
create temporary table lost as
select jobq.enqueue('x', queue => 'deep') as job_id from generate_series(1, 2);
select from jobq.claim('{deep}', 'w', 2);
select is(
    pg_temp.refusal(format(
        'select jobq.fail(%L, 1, ''boom'', null, details => %L)', min(l.job_id::text),
        pg_temp.deep(100)
    )),
    'taken', 'a failure is told whatever its details'
)
from lost as l;
select is(
    pg_temp.refusal(format(
        'select jobq.fail_many(%L)', jsonb_build_array(jsonb_build_object(
            'job_id', max(l.job_id::text), 'attempt', 1, 'error', 'boom',
            'details', pg_temp.deep(100)
        ))
    )),
    'taken', 'in a batch too'
)
from lost as l;
select is(j.last_error_code, 'ERROR', 'an error has a code') from lost as l
cross join lateral jobq.get_job(l.job_id) as j;
select is(
    a.error_details, '{"omitted": "at most 64 levels"}', 'and it says what was left out'
)
from lost as l
join jobq_private.attempt as a on a.job_id = l.job_id;

-- Arrays in arrays are looked at once
set local statement_timeout = '5s';
select is(
    pg_temp.refusal(format(
        'select jobq.enqueue(''x'', %L)',
        repeat('[[1],', 40) || '"' || repeat('x', 400) || '"' || repeat(']', 40)
    )),
    'taken', 'forty arrays in one another take no time'
);
select is(
    pg_temp.refusal(format(
        'select jobq.complete(gen_random_uuid(), 1, %L)',
        repeat('[[1],', 40) || '"' || repeat('x', 400) || '"' || repeat(']', 40)
    )),
    'JQ001 JOB_NOT_FOUND', 'nor do they as a result'
);
reset statement_timeout;

select * from finish();
rollback;
