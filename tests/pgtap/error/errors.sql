-- The table of errors against the source: every error is in it, and each is raised.
-- Needs more than the core.
begin;
select plan(25 + (select count(*)::integer from jobq_private.error));

create temporary table source as
select p.oid::regprocedure::text as function, p.prosrc as body
from pg_catalog.pg_proc as p
where p.pronamespace in (
        'jobq'::regnamespace, 'jobq_http'::regnamespace, 'jobq_internal'::regnamespace,
        'jobq_private'::regnamespace
    );

-- raise_error('CODE', …) and check_problem('CODE', …), and the error fields of functions that cannot
-- call them.
create temporary table raised as
select s.function, m.found[1] as code
from source as s
cross join lateral regexp_matches(
    s.body, '(?:(?:raise_error|check_problem)\(\s*|constraint = )''([A-Z_]+)''', 'g'
) as m (found)
union
select s.function, m.found[1]
from source as s
cross join lateral regexp_matches(s.body, 'array\[''([A-Z_]{5,})''', 'g') as m (found);

select cmp_ok(
    (select count(*) from raised), '>', 50::bigint,
    'the source raises errors by their codes (or this test reads nothing)'
);
select is_empty(
    'select r.* from raised as r left join jobq_private.error as e using (code)
    where e.code is null',
    'every code that the source raises is in the table'
);
select is_empty(
    'select e.code from jobq_private.error as e
    where not exists (select from source as s
    where s.body ~ (''\m'' || e.code || ''\M'')) and e.code <> ''SHARD_AWAY''',
    'every code of the table is raised somewhere, that of routers in router.sql'
);
select is_empty(
    $$
    select s.function
    from source as s
    where (s.body ~ 'raise exception'
    and s.function <> 'jobq_private.raise_error(text,text)')
    and not (
        s.function = 'jobq_private.enqueue_from_view()'
        and s.body ~ 'errcode = ''JQ002''' and s.body ~ 'constraint = ''ILLEGAL_STATE'''
    )
    and not (
        s.function = 'jobq_internal.run_calls(text[],boolean,uuid[],integer[],jsonb[],integer)'
        and s.body ~ 'errcode = ''22023''' and s.body ~ 'constraint = ''INVALID_ARGUMENT'''
    )
    and s.function <> 'jobq_private.trial_health()'
    $$,
    'only raise_error() raises exceptions, the insert into the view, what runs as its caller, and the trial to undo itself'
);
select is_empty(
    'select s.function from source as s where s.body ~* ''when\s+others''
    and s.function not in (
        ''jobq_private.router_function(jobq_private.routed_function)'',
        ''jobq.maintain()'', ''jobq.work(text[],integer)'',
        ''jobq_private.part_health(text,timestamp with time zone,text)'', ''jobq_private.trial_health()'',
        ''jobq_internal.run_calls(text[],boolean,uuid[],integer[],jsonb[],integer)'',
        ''jobq_internal.tick(integer)'', ''jobq_private.fire_each(integer,timestamp with time zone)'',
        ''jobq_private.send_dead_letter()''
    )',
    'only what isolates a task, check, schedule, handler, dead letter or shard catches all errors'
);

-- The table itself
select is_empty(
    'select e.code from jobq_private.error as e where e.sqlstate !~ ''^(JQ|22|42501)''',
    'every SQLSTATE is of class JQ, 22 for an argument, or 42501 for a right'
);
select is_empty(
    $$
    select e.code from jobq_private.error as e
    where e.message ~ '^[A-Z][a-z ]' or e.message ~ '[.%]$' or e.message ~ '%'
    or e.hint = ''
    $$,
    'messages are static, in lowercase, without a full stop; each has a hint'
);
select is_empty(
    'select e.message from jobq_private.error as e
    group by e.message having count(*) > 1',
    'no two codes have the same message'
);
select is_empty(
    $$
    select c.code, c.sqlstate, c.http_status
    from (
        values
        ('JOB_NOT_FOUND', 'JQ001', 404), ('ILLEGAL_STATE', 'JQ002', 409),
        ('IMMUTABLE', 'JQ002', 409), ('LEASE_LOST', 'JQ003', 409),
        ('DEDUP_CONFLICT', 'JQ004', 409), ('PAYLOAD_TOO_LARGE', 'JQ005', 413),
        ('PAYLOAD_TOO_DEEP', 'JQ006', 422), ('PAYLOAD_INVALID', 'JQ006', 422),
        ('SCHEMA_INVALID', 'JQ006', 422), ('QUEUE_NOT_FOUND', 'JQ007', 404),
        ('KIND_NOT_FOUND', 'JQ007', 404), ('HAS_DEPENDENTS', 'JQ008', 409),
        ('QUEUE_FULL', 'JQ010', 429), ('NULL_ARGUMENT', '22004', 400),
        ('INVALID_ARGUMENT', '22023', 400)
    ) as c (code, sqlstate, http_status)
    left join jobq_private.error as e
        on e.code = c.code and e.sqlstate = c.sqlstate and e.http_status = c.http_status
    where e.code is null
    $$,
    'the published codes keep their SQLSTATE and HTTP status'
);

-- How an error looks to a client
select is(
    refusal(format('select jobq_private.raise_error(%L, %L)', e.code, 'x')),
    e.sqlstate || ' ' || e.code,
    format('%s arrives as %s, its code in the CONSTRAINT field', e.code, e.sqlstate)
)
from jobq_private.error as e
order by e.code;
create function pg_temp.fields(statement text)
returns text[]
language plpgsql
as $$
declare
    _message text;
    _detail text;
    _hint text;
begin
    execute statement;
    return null;
exception
    when others then
        get stacked diagnostics
            _message = message_text, _detail = pg_exception_detail,
            _hint = pg_exception_hint;
        return array[_message, _detail, _hint];
end
$$;
select is(
    pg_temp.fields('select jobq.get_job(''00000000-0000-7000-8000-000000000000'')'),
    array[
        'job not found', 'job_id 00000000-0000-7000-8000-000000000000',
        (select e.hint from jobq_private.error as e where e.code = 'JOB_NOT_FOUND')
    ],
    'MESSAGE is static, DETAIL has the values, HINT the remedy'
);
select is(
    pg_temp.fields(
        'select jobq_private.raise_error(''QUEUE_FULL'', ''100 % %s of it'')'
    ),
    array[
        'the queue is full', '100 % %s of it',
        (select e.hint from jobq_private.error as e where e.code = 'QUEUE_FULL')
    ],
    'a detail is never taken for a format'
);
select throws_ok(
    'select jobq_private.raise_error(''NO_SUCH_CODE'', ''x'')', 'P0001', null,
    'a code that is not in the table cannot be raised unnoticed'
);
select is(
    refusal(c.statement), c.refusal,
    c.statement || ': ' || c.refusal
)
from (
    values
    ('select jobq_private.check_given(''a and b'', num_nulls(1, 2))', 'none'),
    ('select jobq_private.check_given(''a and b'', num_nulls(1, null))', '22004 NULL_ARGUMENT'),
    ('select jobq_private.check_argument(null)', 'none'),
    ('select jobq_private.check_argument(''a is odd'')', '22023 INVALID_ARGUMENT'),
    ('select jobq_private.check_problem(''QUEUE_FULL'', null)', 'none'),
    ('select jobq_private.check_problem(''QUEUE_FULL'', ''x'')', 'JQ010 QUEUE_FULL'),
    ('select jobq_private.check_count(''n'', 3, 1, 2)', '22023 INVALID_ARGUMENT')
) as c (statement, refusal);
select results_eq(
    'select e.code, e.sqlstate, e.http_status, e.message, e.hint from jobq.error as e
    order by e.code',
    'select e.code, e.sqlstate, e.http_status, e.message, e.hint
    from jobq_private.error as e
    order by e.code',
    'jobq.error shows people the same table'
);
select jobq.enqueue('x') \g /dev/null
delete from jobq_private.error;
select is(
    refusal(s.statement), 'P0001 ' || s.code, format('without its row is raised: %s', s.code)
)
from (
    values
    ('select jobq.enqueue(null)', 'NULL_ARGUMENT'),
    ('select jobq.enqueue(''x'', priority => 99999)', 'INVALID_ARGUMENT'),
    ('select jobq.get_job(gen_random_uuid())', 'JOB_NOT_FOUND'),
    ('update jobq_private.job set attempt = 7', 'IMMUTABLE')
) as s (statement, code);
delete from jobq_private.setting;
select is(
    refusal('select jobq.enqueue(''x'')'), 'P0001 INVALID_ARGUMENT',
    'no job is lost for want of settings'
);

select * from finish();
rollback;
