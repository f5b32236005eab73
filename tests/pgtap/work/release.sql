-- What jobq.release() promises.
-- Needs more than the core.
begin;
select plan(14);

select jobq.enqueue('work', max_attempts => 2) as one \gset
select from jobq.claim_job(:'one', 'w');
select is(jobq.release(:'one', 1), 'queued', 'a job that is given back waits again');
select results_eq(
    format(
        'select state, previous_state, attempt, attempts, worker, claimed_at,
        lease_expires_at, run_at = now() from jobq.get_job(%L)', :'one'
    ),
    $$
    values ('queued' collate "C", 'running' collate "C", 1, 0, null::text,
        null::timestamptz, null::timestamptz, true)
    $$,
    'its attempt is not counted, and it may run at once'
);
select results_eq(
    format('select attempt, state, error from jobq_internal.list_attempts(%L)', :'one'),
    $$ values (1, 'queued' collate "C", null::text) $$,
    'the attempt stays in its history'
);
do $$
begin
    for _n in 2 .. 20 loop
        perform jobq.release(c.job_id, c.attempt)
        from jobq.claim('{default}', 'w') as c;
    end loop;
end
$$;
select results_eq(
    format('select attempt, attempts, state from jobq.get_job(%L)', :'one'),
    $$ values (20, 0, 'queued' collate "C") $$,
    'a job may be given back any number of times'
);
select from jobq.claim_job(:'one', 'w');
select is(
    jobq.release(:'one', 21, now() + interval '1 h'), 'queued', 'a job may be snoozed'
);
select is(
    (jobq.get_job(:'one')).run_at, now() + interval '1 h',
    'until the time that is given'
);
select jobq.enqueue('work') as two \gset
select from jobq.claim_job(:'two', 'w');
select jobq.cancel(:'two', 'enough');
select is(
    jobq.release(:'two', 1), 'cancelled',
    'a job that was asked to be cancelled is cancelled when it is given back'
);
select jobq.enqueue('work') as three \gset
select is(
    refusal(format('select jobq.release(%L, 0)', :'three')), 'JQ003 LEASE_LOST',
    'a waiting job cannot be given back'
);
select from jobq.claim_job(:'three', 'w');
select is(
    refusal(format('select jobq.release(%L, 0)', :'three')), 'JQ003 LEASE_LOST',
    'a stale attempt cannot give a job back'
);
select is(
    refusal('select jobq.release(' || a.arguments || ')'), a.refusal,
    format('release(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('null, 1', '22004 NULL_ARGUMENT'),
    (format('%L, null', :'three'), '22004 NULL_ARGUMENT'),
    (format('%L, 1, ''infinity''', :'three'), '22023 INVALID_ARGUMENT'),
    ('''00000000-0000-7000-8000-000000000000'', 1', 'JQ001 JOB_NOT_FOUND')
) as a (arguments, refusal);
select is(
    (jobq.get_job(:'three')).state::text, 'running', 'a refused release changes nothing'
);

select * from finish();
rollback;
