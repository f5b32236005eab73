-- What jobq.confirm_cancel() promises.
-- Needs more than the core.
begin;
select plan(11);

select jobq.enqueue('work') as one \gset
select from jobq.claim_job(:'one', 'w');
select is(
    refusal(format('select jobq.confirm_cancel(%L, 1)', :'one')),
    'JQ002 ILLEGAL_STATE',
    'a worker cannot cancel a job unasked'
);
select jobq.cancel(:'one', 'stop');
select is(
    refusal(format('select jobq.confirm_cancel(%L, %s)', :'one', a.attempt)),
    'JQ003 LEASE_LOST', format('attempt %s cannot cancel a job at attempt 1', a.attempt)
)
from (values (0), (2)) as a (attempt);
select is(
    refusal(format('select jobq.confirm_cancel(%L, 1)', :'one')), 'none',
    'the attempt that holds the job ends it'
);
select results_eq(
    format(
        'select state, previous_state, cancel_reason, finished_at >= now()
        from jobq.get_job(%L)', :'one'
    ),
    $$ values ('cancelled' collate "C", 'running' collate "C", 'stop', true) $$,
    'it is cancelled, for the reason that was given'
);
select results_eq(
    format('select attempt, state, worker from jobq_internal.list_attempts(%L)', :'one'),
    $$ values (1, 'cancelled' collate "C", 'w') $$, 'and its attempt is in the history'
);
select is(
    refusal(format('select jobq.confirm_cancel(%L, 1)', :'one')),
    'JQ003 LEASE_LOST',
    'once is enough'
);
select is(
    refusal('select jobq.confirm_cancel(' || a.arguments || ')'), a.refusal,
    format('confirm_cancel(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('null, 1', '22004 NULL_ARGUMENT'),
    (format('%L, null', :'one'), '22004 NULL_ARGUMENT'),
    (format('%L, 0', jobq.enqueue('waiting')), 'JQ003 LEASE_LOST'),
    ('''00000000-0000-7000-8000-000000000000'', 1', 'JQ001 JOB_NOT_FOUND')
) as a (arguments, refusal);

select * from finish();
rollback;
