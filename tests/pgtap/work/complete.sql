-- What jobq.complete() promises.
begin;
select plan(22);

select jobq.enqueue('work', '{"n": 1}', metadata => '{"m": 1}',
    dedup_key => 'd') as one \gset
select from jobq.claim_job(:'one', 'w');
select jobq.set_progress(:'one', 1, '0.5');
create temporary table live as select * from jobq.job where job_id = :'one';
select is(
    jobq.complete(:'one', 1, '{"r": 1}'), true,
    'the attempt that holds the job completes it'
);
select results_eq(
    format(
        'select state, previous_state, result, finished_at between now()
        and clock_timestamp(),
        lease_expires_at from jobq.get_job(%L)', :'one'
    ),
    $$
    values ('succeeded' collate "C", 'running' collate "C", '{"r": 1}'::jsonb, true,
        null::timestamptz)
    $$,
    'the job has succeeded, with its result'
);
select is_empty(
    $$
    select c.key
    from live as l
    cross join jobq.job as j
    cross join lateral jsonb_each(to_jsonb(l)) as c
    where j.job_id = l.job_id
    and to_jsonb(j) -> c.key <> c.value
    and c.key not in ('state', 'previous_state', 'result', 'lease_expires_at',
        'finished_at', 'updated_at')
    $$,
    'nothing else of the job has changed'
);
select is_empty(
    format('select from jobq_private.job where job_id = %L', :'one'),
    'it is no longer among the live jobs'
);
select is(
    jobq.complete(:'one', 1, '{"r": 2}'), false,
    'the same attempt may say so again, as after a commit of unknown outcome'
);
select is((jobq.get_job(:'one')).result, '{"r": 1}', 'but changes nothing');
select is(
    refusal(format('select jobq.complete(%L, 2)', :'one')), 'JQ003 LEASE_LOST',
    'another attempt cannot complete a finished job'
);

-- Results
select jobq.enqueue('work') as none, jobq.enqueue('work') as nil,
    jobq.enqueue('work') as scalar
\gset
select from jobq.claim('{default}', 'w', 9);
select jobq.complete(:'none', 1), jobq.complete(:'nil', 1, 'null'),
    jobq.complete(:'scalar', 1, '"done"');
select results_eq(
    format(
        'select (jobq.get_job(id)).result from unnest(array[%L, %L, %L]::uuid[]) as id',
        :'none', :'nil', :'scalar'
    ),
    $$ values (null::jsonb), (null), ('"done"') $$,
    'a result is optional, and any JSON value'
);

-- Stale attempts
select jobq.enqueue('work') as two \gset
select is(
    refusal(format('select jobq.complete(%L, 0)', :'two')), 'JQ003 LEASE_LOST',
    'a job that nobody has claimed cannot be completed'
);
select from jobq.claim_job(:'two', 'w1');
update jobq_private.job set lease = '1 s' where job_id = :'two';
set local session_replication_role = replica;
update jobq_private.job set lease_expires_at = now() - interval '1 s'
where job_id = :'two';
set local session_replication_role = origin;
select from jobq_internal.recover();
select is(
    refusal(format('select jobq.complete(%L, 1)', :'two')), 'JQ003 LEASE_LOST',
    'an attempt whose lease was taken back cannot complete'
);
select from jobq.claim_job(:'two', 'w2');
select is(
    refusal(format('select jobq.complete(%L, 1)', :'two')), 'JQ003 LEASE_LOST',
    'a stale attempt cannot complete'
);
select results_eq(
    format('select state, attempt, worker from jobq.get_job(%L)', :'two'),
    $$ values ('running' collate "C", 2, 'w2') $$, 'and changes nothing'
);
select is(
    refusal(format('select jobq.complete(%L, 3)', :'two')), 'JQ003 LEASE_LOST',
    'nor can an attempt that has not begun'
);
set local session_replication_role = replica;
update jobq_private.job set lease_expires_at = now() - interval '1 s'
where job_id = :'two';
set local session_replication_role = origin;
select is(
    jobq.complete(:'two', 2), true,
    'an expired lease that nobody has taken back yet still completes'
);
select jobq.enqueue('work') as three \gset
select from jobq.claim_job(:'three', 'w');
select jobq.cancel(:'three');
select is(
    jobq.complete(:'three', 1), true,
    'work that was done before the request to cancel was seen counts'
);
select jobq.enqueue('work') as four \gset
select jobq.cancel(:'four');
select is(
    refusal(format('select jobq.complete(%L, 0)', :'four')), 'JQ003 LEASE_LOST',
    'a cancelled job cannot be completed'
);

-- Bad input
select jobq.enqueue('work') as five \gset
select from jobq.claim_job(:'five', 'w');
select jobq.configure(max_payload_bytes => 1024);
select is(
    refusal(format(
        'select jobq.complete(%L, 1, to_jsonb(repeat(''x'', 1023)))', :'five'
    )),
    'JQ005 PAYLOAD_TOO_LARGE', 'a result is bounded like a payload'
);
select is(
    (jobq.get_job(:'five')).state::text, 'running',
    'a refused result leaves the job running'
);
select is(
    jobq.complete(:'five', 1, to_jsonb(repeat('x', 1022))), true,
    'one of the full size is stored'
);
select is(
    refusal('select jobq.complete(' || a.arguments || ')'), a.refusal,
    format('complete(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('null, 1', '22004 NULL_ARGUMENT'),
    (format('%L, null', :'five'), '22004 NULL_ARGUMENT'),
    ('''00000000-0000-7000-8000-000000000000'', 1', 'JQ001 JOB_NOT_FOUND')
) as a (arguments, refusal);

select * from finish();
rollback;
