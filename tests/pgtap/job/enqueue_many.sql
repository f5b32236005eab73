-- What jobq.enqueue_many() promises.
begin;
select plan(43);

-- What comes back, and what is stored
create temporary table mixed as
select * from jobq.enqueue_many('[
    {"kind": "first", "queue": "q3"}, {"kind": "second", "queue": "q1"},
    {"kind": "third", "queue": "q2"}
]');
select results_eq(
    'select j.kind from mixed as m join jobq.job as j using (job_id) order by m.ordinal',
    $$ values ('first'), ('second'), ('third') $$,
    'each answer is that of its job, whatever the queues'
);
create temporary table batch as
select * from jobq.enqueue_many('[
    {"kind": "a", "payload": {"n": 1}, "queue": "q", "run_at": "2999-01-01T00:00:00Z",
     "priority": 7, "max_attempts": 2, "timeout": "90 s", "idempotency_key": "ik",
     "dedup_key": "dk", "dedup": "replace", "metadata": {"m": 1}},
    {"kind": "a"},
    {"kind": "b", "metadata": null, "run_at": null}
]');
select results_eq(
    'select ordinal, created from batch',
    'values (1, true), (2, true), (3, true)',
    'every job comes back in the order given, and whether it was created'
);
create temporary view stored as
select b.ordinal, j.*
from batch as b
join jobq_private.job as j on j.job_id = b.job_id;
select results_eq(
    'select kind, payload, queue, run_at::timestamptz, priority::integer, max_attempts, timeout,
    idempotency_key, dedup_key, dedup::text, metadata from stored where ordinal = 1',
    $$
    values ('a', '{"n": 1}'::jsonb, 'q', timestamptz '2999-01-01 00:00+00', 7, 2,
        interval '90 s', 'ik', 'dk', 'replace', '{"m": 1}'::jsonb)
    $$,
    'every member is stored'
);
select results_eq(
    'select kind, payload, queue, run_at::timestamptz, priority::integer, max_attempts, metadata
    from stored where ordinal > 1 order by ordinal',
    $$
    values ('a', '{}'::jsonb, 'default', now(), 0, 5, '{}'::jsonb),
    ('b', '{}'::jsonb, 'default', now(), 0, 5, '{}'::jsonb)
    $$,
    'what is left out or null has its default'
);
select is_empty('select * from jobq.enqueue_many(''[]'')', 'no jobs is a batch too');
select results_eq(
    $$
    select count(*), count(distinct e.job_id), count(*) filter (where e.created),
        bool_and(e.ordinal = e.n)
    from (
        select e.*, row_number() over () as n
        from jobq.enqueue_many((
            select jsonb_agg(jsonb_build_object('kind', 'bulk', 'payload', n))
            from generate_series(1, 10000) as n
        )) as e
    ) as e
    $$,
    'values (10000::bigint, 10000::bigint, 10000::bigint, true)',
    'ten thousand jobs go in with one call, and come back in order'
);
select is_empty(
    $$
    select j.payload, lag(j.payload) over (order by j.job_id) as before
    from jobq_private.job as j
    where j.kind = 'bulk' and j.payload <> '1'
    except
    select to_jsonb(n), case when n > 2 then to_jsonb(n - 1) end
    from generate_series(2, 10000) as n
    $$,
    'their ids ascend in the order given'
);

-- Keys within and across batches
create temporary table keyed as
select * from jobq.enqueue_many('[
    {"kind": "k", "idempotency_key": "one"}, {"kind": "k"},
    {"kind": "k", "idempotency_key": "one"}, {"kind": "k", "dedup_key": "d"},
    {"kind": "k", "dedup_key": "d"},
    {"kind": "k", "dedup_key": "d", "dedup": "enqueue"},
    {"kind": "other", "idempotency_key": "one"}
]');
select results_eq(
    'select ordinal, created from keyed',
    'values (1, true), (2, true), (3, false), (4, true), (5, false), (6, true),
    (7, true)',
    'only the first job with a key is created, and each one says whether it was'
);
select results_eq(
    $$
    select count(distinct job_id) filter (where ordinal in (1, 3)),
        count(distinct job_id) filter (where ordinal in (4, 5)), count(distinct job_id)
    from keyed
    $$,
    'values (1::bigint, 1::bigint, 5::bigint)',
    'the others come back with the id of the job that holds the key'
);
select results_eq(
    $$
    select e.ordinal, e.created, e.job_id = k.job_id
    from jobq.enqueue_many('[{"kind": "k", "idempotency_key": "one"},
        {"kind": "k", "dedup_key": "d"}]') as e
    join keyed as k on k.ordinal = case e.ordinal when 1 then 1 else 4 end
    order by e.ordinal
    $$,
    'values (1, false, true), (2, false, true)',
    'a batch that is sent again creates nothing'
);
create temporary table replaced as
select * from jobq.enqueue_many('[
    {"kind": "r", "dedup_key": "d", "dedup": "replace"},
    {"kind": "r", "dedup_key": "d", "dedup": "replace"}
]');
select results_eq(
    $$
    select r.ordinal, r.created, j.state
    from replaced as r
    cross join lateral jobq.get_job(r.job_id) as j
    order by r.ordinal
    $$,
    $$ values (1, true, 'cancelled' collate "C"), (2, true, 'queued' collate "C") $$,
    'replace: the last of a batch stays'
);

-- All or none
select is(
    refusal($$
        select jobq.enqueue_many('[{"kind": "none"},
            {"kind": "none", "priority": 99999}]')
    $$),
    '22023 INVALID_ARGUMENT', 'one bad job refuses the batch'
);
select is(
    refusal($$
        select jobq.enqueue_many('[{"kind": "none", "idempotency_key": "n"},
            {"kind": null}]')
    $$),
    '22004 NULL_ARGUMENT', 'so does one without a kind'
);
select is_empty(
    'select from jobq_private.job where kind = ''none''
    union all select from jobq_private.idempotency_key where kind = ''none''',
    'and leaves no job and no key'
);
select jobq.put_queue('tight', max_depth => 2);
select is(
    refusal(format('select jobq.enqueue_many(%L)', b.batch)), b.refusal,
    format('enqueue_many(%s): %s', b.batch, b.refusal)
)
from (
    values
    ('[{"kind": "x", "queue": "tight"}, {"kind": "y", "queue": "tight"}]', 'none'),
    ('[{"kind": "x", "queue": "tight"}, {"kind": "y", "queue": "tight"},
      {"kind": "y", "queue": "tight"}]', 'JQ010 QUEUE_FULL'),
    (null, '22004 NULL_ARGUMENT'),
    ('null', '22023 INVALID_ARGUMENT'),
    ('{}', '22023 INVALID_ARGUMENT'),
    ('"x"', '22023 INVALID_ARGUMENT'),
    ('[1]', '22023 INVALID_ARGUMENT'),
    ('[null]', '22023 INVALID_ARGUMENT'),
    ('[[]]', '22023 INVALID_ARGUMENT'),
    ('[{}]', '22004 NULL_ARGUMENT'),
    ('[{"kind": "x", "proirity": 1}]', '22023 INVALID_ARGUMENT'),
    ('[{"kind": "x", "job_id": "00000000-0000-7000-8000-000000000000"}]',
        '22023 INVALID_ARGUMENT'),
    ('[{"kind": "x", "state": "running"}]', '22023 INVALID_ARGUMENT'),
    ('[{"kind": "x", "queue": "*"}]', '22023 INVALID_ARGUMENT'),
    ('[{"kind": "x", "metadata": []}]', '22023 INVALID_ARGUMENT'),
    ('[{"kind": "x", "run_at": "infinity"}]', '22023 INVALID_ARGUMENT'),
    ('[{"kind": "x", "payload": null}]', '22023 INVALID_ARGUMENT'),
    ('[{"kind": "x", "run_at": "someday"}]', '22023 INVALID_ARGUMENT'),
    ('[{"kind": "x", "priority": "high"}]', '22023 INVALID_ARGUMENT'),
    ('[{"kind": "x", "timeout": "ages"}]', '22023 INVALID_ARGUMENT')
) as b (batch, refusal);
create function pg_temp.detail(jobs text)
returns text
language plpgsql
as $$
declare
    _detail text;
begin
    perform from jobq.enqueue_many(detail.jobs::jsonb);
    return 'none';
exception
    when invalid_parameter_value then
        get stacked diagnostics _detail = pg_exception_detail;
        return _detail;
end
$$;
select ok(
    pg_temp.detail(format('[{"kind": "x"}, {"kind": "x", %s}, {"kind": "x", "priority": []}]', b.member))
    like 'job 2: ' || b.told, format('the job and the member are told: %s', b.member)
)
from (
    values
    ('"priority": 7, "run_at": "someday"', 'run_at: %"someday"'),
    ('"max_attempts": 1e30', 'max_attempts: %out of range%'),
    ('"timeout": "1 fortnight of 3"', 'timeout: %'),
    ('"after": ["nobody"]', 'after: %"nobody"'),
    ('"payload": null', 'payload must not be null; the default is {}')
) as b (member, told);
select jobq.configure(max_payload_bytes => 1024, max_payload_depth => 3);
select is(
    refusal(format(
        'select jobq.enqueue_many(%L)',
        jsonb_build_array(jsonb_build_object('kind', 'x', p.member, p.content))
    )),
    p.refusal, p.claim
)
from (
    values
    ('payload', to_jsonb(repeat('x', 1100)), 'JQ005 PAYLOAD_TOO_LARGE',
        'payloads are bounded'),
    ('metadata', jsonb_build_object('m', repeat('x', 1100)), 'JQ005 PAYLOAD_TOO_LARGE',
        'so is metadata without a payload'),
    ('payload', '[[[[1]]]]', 'JQ006 PAYLOAD_TOO_DEEP', 'and depth')
) as p (member, content, refusal, claim);

select from jobq.enqueue_many((
    select jsonb_agg('{"kind": "ordered", "queue": "ordered"}'::jsonb) from generate_series(1, 20)
));
select is_empty(
    $$
    select from jobq_private.job as a
    join jobq_private.job as b
        on b.queue = a.queue and b.job_id > a.job_id and b.ctid < a.ctid
        and split_part(b.ctid::text, ',', 1) = split_part(a.ctid::text, ',', 1)
    where a.queue = 'ordered'
    $$,
    'jobs are stored in the order in which claims read them'
);

select * from finish();
rollback;
