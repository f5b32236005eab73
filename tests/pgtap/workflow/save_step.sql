-- What save_step(), save_steps() and list_steps() promise.
begin;
select plan(19);

select jobq.enqueue('work') as job_id \gset
select is(
    refusal(format('select jobq.save_step(%L, 0, ''a'', ''1'')', :'job_id')),
    'JQ003 LEASE_LOST', 'a waiting job records nothing'
);
select from jobq.claim_job(:'job_id', 'w');
select is(
    jobq.save_step(:'job_id', 1, 'a', '{"n": 1}'), '{"n": 1}'::jsonb, 'a step is recorded'
);
select is(
    jobq.save_step(:'job_id', 1, 'a', '{"n": 2}'), '{"n": 1}'::jsonb,
    'what is recorded stays, and is told'
);
select is(jobq.save_step(:'job_id', 1, 'b', null), 'null'::jsonb, 'no value is JSON null');
select results_eq(
    format($$ select name, value, outcome from jobq_internal.save_steps(
        array[%1$L, %1$L, '00000000-0000-7000-8000-000000000000']::uuid[], '{1,1,1}',
        '{a,c,d}', '[7, 8, 9]') $$, :'job_id'),
    $$ values ('a', '{"n": 1}'::jsonb, 'known'), ('c', '8', 'saved'), ('d', null, 'lost') $$,
    'many are recorded at once, each with its outcome'
);
select lives_ok(
    format('select jobq.release(%L, 1)', :'job_id'), 'the job is given back'
);
select from jobq.claim_job(:'job_id', 'w');
select is(
    refusal(format('select jobq.save_step(%L, 1, ''late'', ''1'')', :'job_id')),
    'JQ003 LEASE_LOST', 'an attempt that has lost the job records nothing'
);
select is(
    jobq.save_step(:'job_id', 2, 'a', '5'), '{"n": 1}'::jsonb,
    'a later attempt finds what an earlier one has recorded'
);
select results_eq(
    format('select name, value, attempt from jobq.list_steps(%L)', :'job_id'),
    $$ values ('a', '{"n": 1}'::jsonb, 1), ('b', 'null', 1), ('c', '8', 1) $$,
    'steps are listed in their order'
);
select is(
    refusal(format('select jobq.save_step(%s)', format(a.arguments, :'job_id'))),
    a.refusal, format('save_step(%s): %s', left(a.arguments, 40), a.refusal)
)
from (
    values
    ('null, 2, ''x'', ''1''', '22004 NULL_ARGUMENT'),
    ('%L, null, ''x'', ''1''', '22004 NULL_ARGUMENT'),
    ('%L, 2, null, ''1''', '22004 NULL_ARGUMENT'),
    ('%L, 2, '''', ''1''', '22023 INVALID_ARGUMENT'),
    ('%L, 2, repeat(''x'', 257), ''1''', '22023 INVALID_ARGUMENT'),
    ('%L, 2, ''event:x'', ''1''', '22023 INVALID_ARGUMENT'),
    ('%L, 2, ''x'', to_jsonb(repeat(''x'', 1048575))', 'JQ005 PAYLOAD_TOO_LARGE'),
    ('%L, 2, ''x'', ''1e400''', 'JQ006 PAYLOAD_INVALID')
) as a (arguments, refusal);
select is(
    refusal('select jobq.list_steps(''00000000-0000-7000-8000-000000000000'')'),
    'JQ001 JOB_NOT_FOUND', 'an unknown job has no steps'
);
select jobq.complete(:'job_id', 2);
select is(
    (select count(*) from jobq.list_steps(:'job_id')), 3::bigint,
    'a finished job keeps its steps'
);

select * from finish();
rollback;
