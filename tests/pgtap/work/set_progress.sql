-- What jobq.set_progress() promises.
begin;
select plan(13);

select jobq.enqueue('work') as job_id \gset
select is(
    refusal(format('select jobq.set_progress(%L, 0, ''1'')', :'job_id')),
    'JQ003 LEASE_LOST', 'a waiting job makes no progress'
);
select from jobq.claim_job(:'job_id', 'w');
create temporary table before as select * from jobq_private.job
where job_id = :'job_id';
select jobq.set_progress(:'job_id', 1, '{"done": 3, "of": 10}');
select is(
    (jobq.get_job(:'job_id')).progress, '{"done": 3, "of": 10}',
    'progress is any JSON value'
);
select results_eq(
    format('select lease_expires_at, heartbeat_at, state from jobq_private.job
        where job_id = %L', :'job_id'),
    'select lease_expires_at, heartbeat_at, state from before', 'it is no heartbeat'
);
select jobq.set_progress(:'job_id', 1, null);
select is((jobq.get_job(:'job_id')).progress, null, 'null takes it back');
select is(
    refusal(format('select jobq.set_progress(%s)',
        format(a.arguments, :'job_id'))),
    a.refusal, format('set_progress(%s): %s', format(a.arguments, 'id'), a.refusal)
)
from (
    values
    ('null, 1, ''1''', '22004 NULL_ARGUMENT'),
    ('%L, null, ''1''', '22004 NULL_ARGUMENT'),
    ('%L, 0, ''1''', 'JQ003 LEASE_LOST'),
    ('%L, 2, ''1''', 'JQ003 LEASE_LOST'),
    ('''00000000-0000-7000-8000-000000000000'', 1, ''1''', 'JQ001 JOB_NOT_FOUND'),
    ('%L, 1, to_jsonb(repeat(''x'', 65534))', 'none'),
    ('%L, 1, to_jsonb(repeat(''x'', 65535))', 'JQ005 PAYLOAD_TOO_LARGE')
) as a (arguments, refusal);
select jobq.fail(:'job_id', 1, 'x', retryable => false);
select is(
    length((jobq.get_job(:'job_id')).progress #>> '{}'), 65534,
    'a finished job keeps its progress'
);
select is(
    refusal(format('select jobq.set_progress(%L, 1, ''1'')', :'job_id')),
    'JQ003 LEASE_LOST', 'and makes no more'
);

select * from finish();
rollback;
