-- What jobq.rerun() promises.
begin;
select plan(10);

select jobq.enqueue(
    'work', '{"n": 1}', queue => 'q', priority => 3, max_attempts => 7, timeout => '2 min',
    dedup_key => 'd', idempotency_key => 'i', metadata => '{"m": 1}', concurrency_key => 'c',
    cost => 5
) as done \gset
select is(
    refusal(format('select jobq.rerun(%L)', :'done')), 'JQ002 ILLEGAL_STATE',
    'a job that waits is not rerun'
);
select from jobq.claim('{q}', 'w');
select is(
    refusal(format('select jobq.rerun(%L)', :'done')), 'JQ002 ILLEGAL_STATE',
    'nor is one that runs'
);
select jobq.complete(:'done', 1, '{"r": 1}');
create temporary table before as select * from jobq.get_job(:'done');
select jobq.rerun(:'done') as copy \gset
select results_eq(
    format('select j.state, j.attempt, j.metadata, j.idempotency_key from jobq.get_job(%L) as j', :'copy'),
    format(
        'values (''queued'' collate "C", 0, jsonb_build_object(''m'', 1, ''rerun_of'', %L::text), null)', :'done'
    ),
    'the copy is a new job with a link to the finished one, and without its idempotency key'
);
select is_empty(
    format($$
        select c.key
        from before as b
        cross join jobq.get_job(%L) as j
        cross join lateral jsonb_each(to_jsonb(b)) as c
        where to_jsonb(j) -> c.key is distinct from c.value
        and c.key in ('kind', 'queue', 'payload', 'priority', 'max_attempts', 'timeout', 'dedup_key',
            'concurrency_key', 'cost')
    $$, :'copy'),
    'payload, queue and options are those of the finished one'
);
select set_eq(
    format('select * from jobq.get_job(%L)', :'done'), 'select * from before',
    'which stays as it is'
);
select isnt(jobq.rerun(:'done'), :'copy', 'each call makes a job, even while one with the same dedup key waits');
select is(
    (select count(*) from jobq.audit as a where a.action = 'rerun' and a.subject = :'done'), 2::bigint,
    'the audit records it'
);
select jobq.cancel(:'copy');
select jobq.rerun(:'copy') as again \gset
select is(
    (jobq.get_job(:'again')).metadata ->> 'rerun_of', :'copy',
    'a job that was cancelled, and is a copy itself, can be rerun'
);
select is(
    refusal('select jobq.rerun(''00000000-0000-7000-8000-000000000000'')'),
    'JQ001 JOB_NOT_FOUND', 'an unknown job is refused'
);
select is(
    refusal('select jobq.rerun(null)'), '22004 NULL_ARGUMENT', 'and null'
);

select * from finish();
rollback;
