-- What jobq.log() promises.
begin;
select plan(12);

select jobq.enqueue('work') as job_id \gset
select from jobq.claim_job(:'job_id', 'w');
select jobq.log(:'job_id', 1, 'INFO', 'started');
select results_eq(
    'select job_id, attempt, level, message, logged_at between now()
    and clock_timestamp()
    from jobq_private.job_log',
    format($$ values (%L::uuid, 1, 'INFO', 'started', true) $$, :'job_id'),
    'a line is stored with the attempt and the time'
);
select jobq.complete(:'job_id', 1);
select lives_ok(
    format('select jobq.log(%L, 1, ''WARN'', ''too late'')', :'job_id'),
    'an attempt that has ended may still log'
);
select jobq.log(:'job_id', 1, 'DEBUG', repeat('é', 9000));
select is(
    (select length(l.message) from jobq_private.job_log as l where l.level = 'DEBUG'),
    8192,
    'a line is cut at 8192 characters'
);
select is(
    refusal(format('select jobq.log(%s)', format(a.arguments, :'job_id'))),
    a.refusal,
    format('log(%s): %s', format(a.arguments, 'id'), a.refusal)
)
from (
    values
    ('null, 1, ''INFO'', ''x''', '22004 NULL_ARGUMENT'),
    ('%L, null, ''INFO'', ''x''', '22004 NULL_ARGUMENT'),
    ('%L, 1, null, ''x''', '22004 NULL_ARGUMENT'),
    ('%L, 1, ''INFO'', null', '22004 NULL_ARGUMENT'),
    ('%L, 1, ''info'', ''x''', '22023 INVALID_ARGUMENT'),
    ('%L, 1, ''FATAL'', ''x''', '22023 INVALID_ARGUMENT'),
    ('jobq_private.new_id(0), 1, ''INFO'', ''x''', 'JQ001 JOB_NOT_FOUND'),
    ('%L, 1, ''ERROR'', ''''', 'none')
) as a (arguments, refusal);

select throws_ok(
    format('select jobq.log(%L, 99, ''INFO'', ''x'')', jobq.enqueue('work')), '22023', null,
    'no attempt that the job has not had logs for it'
);

select * from finish();
rollback;
