-- What jobq_internal.list_attempts() and the view jobq.attempt promise.
begin;
select plan(7);

select jobq.enqueue('work') as job_id \gset
select is_empty(
    format('select * from jobq_internal.list_attempts(%L)', :'job_id'),
    'a new job has no attempts'
);
select from jobq.claim_job(:'job_id', 'w1');
select results_eq(
    format(
        'select attempt, state, worker, started_at >= now(), finished_at, duration
        from jobq_internal.list_attempts(%L)', :'job_id'
    ),
    $$
    values (1, 'running' collate "C", 'w1', true, null::timestamptz, null::interval)
    $$,
    'the attempt that runs is one of them'
);
select jobq.fail(:'job_id', 1, 'boom', 'E1', retry_in => '0');
select from jobq.claim_job(:'job_id', 'w2');
select jobq.release(:'job_id', 2);
select from jobq.claim_job(:'job_id', 'w3');
select jobq.complete(:'job_id', 3, '"r"');
select results_eq(
    format(
        'select attempt, state, worker, error_code, error, result, duration
            = finished_at - started_at and duration >= ''0''
            from jobq_internal.list_attempts(%L)',
        :'job_id'
    ),
    $$
    values (1, 'retrying' collate "C", 'w1', 'E1', 'boom', null::jsonb, true),
    (2, 'queued', 'w2', null, null, null, true),
    (3, 'succeeded', 'w3', null, null, '"r"', true)
    $$,
    'each attempt stands once, in order, with what it left the job in'
);
select results_eq(
    format('select attempt from jobq.attempt where job_id = %L order by attempt',
        :'job_id'),
    'values (1), (2), (3)', 'the view shows the same'
);
select is_empty(
    format('select * from jobq_internal.list_attempts(%L)',
        (select jobq.enqueue('work') as other)),
    'other jobs have their own'
);
select is(
    refusal(format('select jobq_internal.list_attempts(%L)', a.job_id)), a.refusal,
    format('list_attempts(%L): %s', a.job_id, a.refusal)
)
from (
    values (null, '22004 NULL_ARGUMENT'),
    ('00000000-0000-7000-8000-000000000000', 'JQ001 JOB_NOT_FOUND')
) as a (job_id, refusal);

select * from finish();
rollback;
