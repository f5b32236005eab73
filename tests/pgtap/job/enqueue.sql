-- What jobq.enqueue() promises.
begin;
select plan(86);

-- Defaults, and what is stored
select jobq.enqueue('plain') as plain \gset
select is(
    (
        select jsonb_strip_nulls(to_jsonb(j)) - 'due_at'
        from jobq_private.job as j
        where j.job_id = :'plain' and j.due_at between now() and clock_timestamp()
    ),
    jsonb_build_object(
        'job_id', :'plain', 'created_at', now(), 'run_at', now(), 'lease', interval '30 s',
        'timeout', interval '5 min', 'attempt', 0, 'uncounted', 0, 'max_attempts', 5,
        'expiries', 0, 'priority', 0, 'transition_slot', 0, 'is_awaited', false,
        'state', 'queued', 'region', 'default', 'queue', 'default', 'kind', 'plain',
        'metadata', '{}'::jsonb, 'payload', '{}'::jsonb
    ),
    'a job of which only the kind is given waits in the default queue, to run now'
);
select is(
    substr(:'plain', 15, 1), '7', 'ids are UUIDs of version 7'
);
select ok(
    jobq_private.id_time(:'plain') between now() - interval '1 s' and clock_timestamp(),
    'an id tells when it was made'
);
select jobq.enqueue(
    'full', '{"a": [1]}', queue => 'q', run_at => '2999-01-01 00:00+00', priority => -3,
    max_attempts => 2, timeout => '90 s', idempotency_key => 'ik', dedup_key => 'dk',
    dedup => 'replace', metadata => '{"m": 1}'
) as full \gset
select results_eq(
    format(
        $$
        select j.kind, j.payload, j.queue, j.run_at::timestamptz, j.priority::integer,
            j.max_attempts,
            j.timeout, j.idempotency_key, j.dedup_key, j.dedup::text, j.metadata, j.state
        from jobq_private.job as j where j.job_id = %L
        $$,
        :'full'
    ),
    $$
    values ('full', '{"a": [1]}'::jsonb, 'q', timestamptz '2999-01-01 00:00+00', -3, 2,
        interval '90 s', 'ik', 'dk', 'replace', '{"m": 1}'::jsonb, 'queued' collate "C")
    $$,
    'every argument is stored'
);
select jobq.enqueue('plain', null, metadata => null) as nothing \gset
select is(
    (select array[j.payload, j.metadata] from jobq_private.job as j
    where j.job_id = :'nothing'),
    array['{}', '{}']::jsonb[],
    'a null payload or metadata is an empty object'
);
select jobq.enqueue('plain', payload => p.payload) as job_id, p.payload
into temporary stored
from (values ('1'::jsonb), ('"text"'), ('[]'), ('null')) as p (payload);
select is_empty(
    'select s.payload from stored as s join jobq_private.job as j using (job_id)
    where j.payload <> s.payload',
    'a payload may be any JSON value'
);
select ok(
    bool_and(o.job_id > o.before), 'ids of one session ascend'
)
from (
    select t.job_id, lag(t.job_id) over (order by t.n) as before
    from (
        select n, jobq.enqueue('plain') as job_id from generate_series(1, 200) as n
    ) as t
) as o
where o.before is not null;

-- Idempotency keys: per kind, for as long as they are retained
select is(
    jobq.enqueue('full', '{"other": true}', idempotency_key => 'ik'), :'full'::uuid,
    'the same key of a kind yields the same job, whatever else is asked for'
);
select isnt(
    jobq.enqueue('plain', idempotency_key => 'ik'), :'full'::uuid,
    'another kind has keys of its own'
);
select is(
    (select count(*) from jobq_private.job as j where j.kind = 'full'), 1::bigint,
    'no second job was made for the key'
);
select is(
    (select j.payload from jobq_private.job as j where j.job_id = :'full'),
    '{"a": [1]}',
    'and the first one is as it was'
);
select jobq.cancel(:'full');
select is(
    jobq.enqueue('full', idempotency_key => 'ik'), :'full'::uuid,
    'a key outlives its job'
);
select jobq.put_kind('again', reuse_key_after_failure => true, max_attempts => 1);
select jobq.enqueue('again', idempotency_key => 'k') as first \gset
select is(
    jobq.enqueue('again', idempotency_key => 'k'), :'first'::uuid,
    'a key that may be used again after a failure is held while the job lives'
);
select from jobq.claim_job(:'first', 'w');
select jobq.fail(:'first', 1, 'boom');
select jobq.enqueue('again', idempotency_key => 'k') as second \gset
select isnt(
    :'second'::uuid, :'first'::uuid, 'and makes another job once the first is dead'
);
select is(
    jobq.enqueue('again', idempotency_key => 'k'), :'second'::uuid,
    'which then holds the key'
);
select from jobq.claim_job(:'second', 'w');
select jobq.complete(:'second', 1);
select is(
    jobq.enqueue('again', idempotency_key => 'k'), :'second'::uuid,
    'a job that succeeded keeps its key'
);

-- Dedup keys: per kind, among live jobs
select jobq.enqueue('d', dedup_key => 'k') as held \gset
select is(
    jobq.enqueue('d', dedup_key => 'k'), :'held'::uuid,
    'skip, the default: a live job with the key stands for the new one'
);
select isnt(
    jobq.enqueue('e', dedup_key => 'k'), :'held'::uuid, 'kinds do not share dedup keys'
);
select isnt(
    jobq.enqueue('d', dedup_key => 'k', dedup => 'enqueue'), :'held'::uuid,
    'enqueue: a dedup key is only a mark'
);
select jobq.enqueue('d', dedup_key => 'k', dedup => 'replace') as heir \gset
select isnt(
    :'heir'::uuid, :'held'::uuid, 'replace: a new job takes the place of one that waits'
);
select results_eq(
    format('select j.state, j.cancel_reason from jobq.get_job(%L) as j', :'held'),
    format('select ''cancelled'' collate "C", %L', 'replaced by ' || :'heir'),
    'which is cancelled, and says by what'
);
select from jobq.claim_job(:'heir', 'w');
select is(
    refusal('select jobq.enqueue(''d'', dedup_key => ''k'', dedup => ''replace'')'),
    'JQ004 DEDUP_CONFLICT', 'replace: a running job is never replaced, and no payload dropped'
);
select is(
    (select j.state::text from jobq.get_job(:'heir') as j), 'running',
    'and goes on running'
);
select jobq.complete(:'heir', 1);
select isnt(
    jobq.enqueue('d', dedup_key => 'k'), :'heir'::uuid,
    'a finished job lets go of its dedup key'
);
select jobq.enqueue('d', dedup_key => 'r') as waiting \gset
select from jobq.claim_job(:'waiting', 'w');
select jobq.fail(:'waiting', 1, 'boom');
select isnt(
    jobq.enqueue('d', dedup_key => 'r', dedup => 'replace'), :'waiting'::uuid,
    'replace: a retrying job is replaced too'
);
select is(
    jobq.enqueue('d', idempotency_key => 'both', dedup_key => 'r'),
    (select j.job_id from jobq_private.job as j
    where j.kind = 'd' and j.dedup_key = 'r'),
    'a new idempotency key with a held dedup key stands for the job that holds it'
);
select jobq.cancel(j.job_id) from jobq_private.job as j where j.dedup_key = 'r';
select is(
    (jobq.get_job(jobq.enqueue('d', idempotency_key => 'both',
        dedup_key => 'r'))).state::text,
    'cancelled', 'and goes on standing for it'
);

-- Limits
select jobq.configure(max_payload_bytes => 1024, max_payload_depth => 3);
select is(
    refusal(format('select jobq.enqueue(''x'', %s)', p.arguments)),
    p.refusal, p.claim
)
from (
    values
    ('to_jsonb(repeat(''x'', 1022))', 'none',
        'a payload of max_payload_bytes is accepted'),
    ('to_jsonb(repeat(''x'', 1023))', 'JQ005 PAYLOAD_TOO_LARGE',
        'a payload of one byte more is refused'),
    ('to_jsonb(repeat(''é'', 600))', 'JQ005 PAYLOAD_TOO_LARGE',
        'bytes count, not characters'),
    ('''[1e300, 1e300, 1e300, 1e300]''', 'JQ005 PAYLOAD_TOO_LARGE',
        'short numbers that are long as text'),
    ('''{}'', metadata => jsonb_build_object(''m'', repeat(''x'', 1100))',
        'JQ005 PAYLOAD_TOO_LARGE', 'metadata counts too'),
    ('null, metadata => jsonb_build_object(''m'', repeat(''x'', 1100))',
        'JQ005 PAYLOAD_TOO_LARGE', 'also where there is no payload'),
    ('''{"a": {"b": {}}}''', 'none',
        'a payload of max_payload_depth levels is accepted'),
    ('''{"a": {"b": {"c": {}}}}''', 'JQ006 PAYLOAD_TOO_DEEP',
        'one level more is refused'),
    ('''[[[[]]]]''', 'JQ006 PAYLOAD_TOO_DEEP', 'levels of arrays count'),
    ('''[1, [2, [], [3, [4]]]]''', 'JQ006 PAYLOAD_TOO_DEEP', 'wherever they are')
) as p (arguments, refusal, claim);

-- A full queue
select jobq.put_queue('tight', max_depth => 2);
select jobq.enqueue('x', queue => 'tight', idempotency_key => 'first') as first \gset
select jobq.enqueue('x', queue => 'tight', dedup_key => 'second') as second \gset
select is(
    refusal('select jobq.enqueue(''x'', queue => ''tight'')'),
    'JQ010 QUEUE_FULL',
    'a queue takes max_depth waiting jobs and no more'
);
select is(
    refusal('select jobq.enqueue(''x'', queue => ''tight'', idempotency_key => ''new'')'),
    'JQ010 QUEUE_FULL', 'a new key is no exception'
);
select is(
    refusal(
        'select jobq.enqueue(''x'', queue => ''tight'', run_at => ''2999-01-01'')'
    ),
    'JQ010 QUEUE_FULL', 'a job for later is no exception'
);
select is(
    refusal('select jobq.enqueue(''x'')'), 'none', 'other queues are not full'
);
select from jobq.claim('{tight}', 'w');
select is(
    refusal('select jobq.enqueue(''x'', queue => ''tight'')'), 'none',
    'a running job makes room'
);
select is(
    refusal(
        'select jobq.enqueue(''x'', queue => ''tight'', idempotency_key => ''first'')'
    ),
    'none', 'a full queue still tells the job of a known idempotency key'
);
select is(
    refusal(format(
        'select jobq.enqueue(''x'', queue => ''tight'', dedup_key => ''second'','
        ' dedup => %L)', d.dedup
    )),
    d.refusal,
    format('a held dedup key with %s on a full queue: %s', d.dedup, d.refusal)
)
from (
    values ('skip', 'none'), ('replace', 'none')
) as d (dedup, refusal);

-- Null arguments and bad input
select is(
    refusal(format('select jobq.enqueue(%s)', a.arguments)),
    a.refusal, format('enqueue(%s): %s', left(a.arguments, 60), a.refusal)
)
from (
    values
    ('null', '22004 NULL_ARGUMENT'),
    ('''''', '22023 INVALID_ARGUMENT'),
    ('''x'', dedup => ''replace''', '22023 INVALID_ARGUMENT'),
    ('repeat(''k'', 128)', 'none'),
    ('repeat(''k'', 129)', '22023 INVALID_ARGUMENT'),
    ('''x'', queue => ''''', '22023 INVALID_ARGUMENT'),
    ('''x'', queue => ''*''', '22023 INVALID_ARGUMENT'),
    ('''x'', queue => ''*'', idempotency_key => ''k''', '22023 INVALID_ARGUMENT'),
    ('''x'', queue => ''tenant-*''', '22023 INVALID_ARGUMENT'),
    ('''x'', queue => ''tenant-*'', idempotency_key => ''k''', '22023 INVALID_ARGUMENT'),
    ('''x'', queue => ''a*b''', 'none'), ('''*'', queue => ''!''', 'none'),
    ('''x'', queue => repeat(''q'', 129)', '22023 INVALID_ARGUMENT'),
    ('''x'', run_at => ''infinity''', '22023 INVALID_ARGUMENT'),
    ('''x'', run_at => ''-infinity''', '22023 INVALID_ARGUMENT'),
    ('''x'', run_at => ''1999-01-01''', 'none'),
    ('''x'', priority => 32767', 'none'),
    ('''x'', priority => 32768', '22023 INVALID_ARGUMENT'),
    ('''x'', priority => -32769', '22023 INVALID_ARGUMENT'),
    ('''x'', max_attempts => 0', '22023 INVALID_ARGUMENT'),
    ('''x'', max_attempts => 10000', 'none'),
    ('''x'', max_attempts => 10001', '22023 INVALID_ARGUMENT'),
    ('''x'', timeout => ''0''', '22023 INVALID_ARGUMENT'),
    ('''x'', timeout => ''-1 s''', '22023 INVALID_ARGUMENT'),
    ('''x'', timeout => ''1 ms''', 'none'),
    ('''x'', timeout => ''366 days''', '22023 INVALID_ARGUMENT'),
    ('''x'', idempotency_key => ''''', '22023 INVALID_ARGUMENT'),
    ('''x'', idempotency_key => repeat(''k'', 513)', '22023 INVALID_ARGUMENT'),
    ('''x'', dedup_key => ''''', '22023 INVALID_ARGUMENT'),
    ('''x'', dedup_key => repeat(''k'', 513)', '22023 INVALID_ARGUMENT'),
    ('''x'', dedup => ''drop''', '22023 INVALID_ARGUMENT'),
    ('''x'', metadata => ''[]''', '22023 INVALID_ARGUMENT'),
    ('''x'', metadata => ''1''', '22023 INVALID_ARGUMENT')
) as a (arguments, refusal);

-- Those that look at live jobs see also the ones that looked at none
select jobq.enqueue('open', '1', dedup_key => 'd', dedup => 'enqueue') as first \gset
select jobq.enqueue('open', '2', dedup_key => 'd', dedup => 'enqueue') as second \gset
select isnt(:'first'::uuid, :'second'::uuid, 'enqueue makes a job beside another of its dedup key');
select is(
    jobq.enqueue('open', '3', dedup_key => 'd'), :'first'::uuid,
    'skip gives a live job that was made by enqueue'
);
select jobq.enqueue('open', '4', dedup_key => 'd', dedup => 'replace') as fourth \gset
select results_eq(
    $$ select job_id::text, state collate "default" from jobq.job where kind = 'open' order by 1 $$,
    format($$ values (%L, 'cancelled'), (%L, 'cancelled'), (%L, 'queued') $$,
        :'first', :'second', :'fourth'),
    'replace takes the place of all of them'
);
select jobq.enqueue('open', '5', dedup_key => 'd', dedup => 'enqueue') as fifth \gset
select from jobq.claim_job(:'fifth', 'w');
select is(
    refusal($$ select jobq.enqueue('open', dedup_key => 'd', dedup => 'replace') $$),
    'JQ004 DEDUP_CONFLICT', 'and of none that runs'
);
select is(
    (
        select array_agg(m.created order by m.ordinal)
        from jobq.enqueue_many('[{"kind": "open", "dedup_key": "d"},
            {"kind": "open", "dedup_key": "e", "dedup": "enqueue"},
            {"kind": "open", "dedup_key": "e"}]') as m
    ),
    '{f,t,f}', 'batches see them too'
);
select is(
    refusal($$
        select jobq.enqueue('open', dedup_key => 'e', dedup => 'skip', max_attempts => 0)
    $$),
    '22023 INVALID_ARGUMENT', 'what is not acceptable is refused all the same'
);

-- A change that has no effect
select jobq.enqueue('stuck', '{}', 'stuck', dedup_key => 'd') \g /dev/null
create function pg_temp.refuse() returns trigger language plpgsql as $$ begin return null; end $$;
create trigger refuse before update on jobq_private.job
for each row when (new.queue = 'stuck') execute function pg_temp.refuse();
set local statement_timeout = '10 s';
select is(
    refusal(format(
        $$ select jobq.enqueue('stuck', '{}', 'stuck', dedup_key => 'd', dedup => %L) $$, v.dedup
    )), 'JQ004 DEDUP_CONFLICT', v.dedup || ' gives up on a job that does not change'
)
from (values ('replace'), ('debounce')) as v (dedup);
drop trigger refuse on jobq_private.job;

select * from finish();
rollback;
