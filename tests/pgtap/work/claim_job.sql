-- What jobq.claim_job() promises.
begin;
select plan(12);

select jobq.enqueue('work', '{"n": 1}') as one \gset
select jobq.enqueue('work', '{"n": 2}', priority => 9) as two \gset
select results_eq(
    format('select c.job_id, c.attempt, c.payload from jobq.claim_job(%L, ''w'') as c',
        :'one'),
    format($$ values (%L::uuid, 1, '{"n": 1}'::jsonb) $$, :'one'),
    'the job that is named is leased, whatever stands before it'
);
select results_eq(
    format('select j.state, j.worker from jobq.get_job(%L) as j', :'one'),
    $$ values ('running' collate "C", 'w') $$, 'and runs'
);
select is(
    (jobq.get_job(:'two')).state::text, 'queued', 'no other job is touched'
);
select is_empty(
    format('select jobq.claim_job(%L, ''v'')', :'one'),
    'a running job cannot be claimed'
);
select jobq.enqueue('work', run_at => now() + interval '1 h') as later \gset
select is_empty(
    format('select jobq.claim_job(%L, ''w'')', :'later'), 'nor one that is not due'
);
select jobq.enqueue('work', queue => 'p') as paused \gset
insert into jobq_private.queue (queue, paused_at) values ('p', now());
select is_empty(
    format('select jobq.claim_job(%L, ''w'')', :'paused'),
    'nor one whose queue is paused'
);
select jobq.cancel(:'two');
select is_empty(
    format('select jobq.claim_job(%L, ''w'')', :'two'), 'nor a finished one'
);
select is_empty(
    'select jobq.claim_job(gen_random_uuid(), ''w'')', 'nor one that does not exist'
);
select jobq.fail(:'one', 1, 'boom', retry_in => '0');
select is(
    (select c.attempt from jobq.claim_job(:'one', 'w') as c), 2,
    'a retrying job that is due is claimed as its next attempt'
);
select is(
    refusal(format('select jobq.claim_job(%s)', a.arguments)), a.refusal,
    format('claim_job(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('null, ''w''', '22004 NULL_ARGUMENT'),
    ('gen_random_uuid(), null', '22004 NULL_ARGUMENT'),
    ('gen_random_uuid(), ''''', '22023 INVALID_ARGUMENT')
) as a (arguments, refusal);

select * from finish();
rollback;
