-- What jobq.fail() promises.
-- Needs more than the core.
begin;
select plan(38);

-- Retrying, then dead
select jobq.enqueue('work', max_attempts => 2) as one \gset
select from jobq.claim_job(:'one', 'w');
select is(
    jobq.fail(:'one', 1, 'boom', 'TIMEOUT'), 'retrying',
    'with attempts left a job retries'
);
select results_eq(
    format(
        'select state, previous_state, worker, claimed_at, lease_expires_at, last_error,
        last_error_code, attempts, run_at > clock_timestamp()
        from jobq.get_job(%L)', :'one'
    ),
    $$
    values ('retrying' collate "C", 'running' collate "C", null::text,
        null::timestamptz,
        null::timestamptz, 'boom', 'TIMEOUT', 1, true)
    $$,
    'it waits, without a lease, and says why'
);
update jobq_private.job set run_at = now() where job_id = :'one';
select from jobq.claim_job(:'one', 'w');
select is(jobq.fail(:'one', 2, 'bang'), 'dead', 'with its attempts spent it is dead');
select results_eq(
    format(
        'select state, last_error, last_error_code, attempts, max_attempts, result,
        finished_at between now() and clock_timestamp() from jobq.get_job(%L)', :'one'
    ),
    $$ values ('dead' collate "C", 'bang', 'ERROR', 2, 2, null::jsonb, true) $$,
    'the last error stays, with the default code'
);
select results_eq(
    format(
        'select attempt, state, worker, error_code, error, duration >= ''0'' from
        jobq_internal.list_attempts(%L)', :'one'
    ),
    $$
    values (1, 'retrying' collate "C", 'w', 'TIMEOUT', 'boom', true),
    (2, 'dead', 'w', 'ERROR', 'bang', true)
    $$,
    'each attempt keeps its own error'
);

-- Permanent failures
select jobq.enqueue('work') as two \gset
select from jobq.claim_job(:'two', 'w');
select is(
    jobq.fail(:'two', 1, 'never', 'GONE', retryable => false), 'dead',
    'a failure that is not retryable is the last, whatever attempts are left'
);

-- The delay
select jobq.enqueue('work') as three \gset
select from jobq.claim_job(:'three', 'w');
create temporary table before as select clock_timestamp() as at;
select jobq.fail(:'three', 1, 'busy', retry_in => '1 h');
select ok(
    j.run_at between b.at + interval '1 h' and clock_timestamp() + interval '1 h',
    'retry_in goes before the backoff of the kind'
)
from before as b
cross join jobq.get_job(:'three') as j;
update jobq_private.job set run_at = now() where job_id = :'three';
select from jobq.claim_job(:'three', 'w');
select jobq.fail(:'three', 2, 'busy', retry_in => '0');
select isnt_empty(
    format('select jobq.claim_job(%L, ''w'')', :'three'),
    'retry_in 0 makes it runnable at once'
);
select is(
    jobq.fail(:'three', 3, null, null, null, null), 'retrying',
    'a failure without error, code or delay is retryable'
);
select results_eq(
    format('select last_error, last_error_code from jobq.get_job(%L)', :'three'),
    'values (null::text, ''ERROR'')', 'and has no error, but a code'
);

-- Bounds of the error
select jobq.enqueue('work') as four \gset
select from jobq.claim_job(:'four', 'w');
select jobq.fail(:'four', 1, repeat('é', 513), repeat('C', 200));
select results_eq(
    format(
        'select length(last_error), length(last_error_code) from jobq.get_job(%L)',
        :'four'
    ),
    'values (512, 128)', 'an error is cut at 512 characters, a code at 128'
);

-- Cancelled meanwhile
select jobq.enqueue('work') as five \gset
select from jobq.claim_job(:'five', 'w');
select jobq.cancel(:'five', 'enough');
select is(
    jobq.fail(:'five', 1, 'boom'), 'cancelled',
    'a failed job that was asked to be cancelled does not retry'
);
select is(
    (select j.cancel_reason from jobq.get_job(:'five') as j), 'enough',
    'and keeps the reason'
);

-- Released attempts do not count
select jobq.enqueue('work', max_attempts => 1) as six \gset
select from jobq.claim_job(:'six', 'w');
select jobq.release(:'six', 1);
select from jobq.claim_job(:'six', 'w');
select is(
    jobq.fail(:'six', 2, 'boom'), 'dead', 'attempts are spent by those that count'
);

-- Stale attempts
select jobq.enqueue('work') as seven \gset
select is(
    refusal(format('select jobq.fail(%L, 0, ''x'')', :'seven')),
    'JQ003 LEASE_LOST',
    'a waiting job cannot fail'
);
select from jobq.claim_job(:'seven', 'w');
select is(
    refusal(format('select jobq.fail(%L, %s, ''x'')', :'seven', a.attempt)),
    'JQ003 LEASE_LOST', format('attempt %s cannot fail a job at attempt 1', a.attempt)
)
from (values (0), (2)) as a (attempt);
select is((jobq.get_job(:'seven')).state::text, 'running', 'and changes nothing');
select jobq.fail(:'seven', 1, 'x');
select is(
    refusal(format('select jobq.fail(%L, 1, ''x'')', :'seven')),
    'JQ003 LEASE_LOST',
    'an attempt fails once'
);
select is(
    refusal(format('select jobq.fail(%L, 2, ''x'')', :'one')),
    'JQ003 LEASE_LOST',
    'a finished job cannot fail'
);

-- Bad input
select jobq.enqueue('work') as eight \gset
select from jobq.claim_job(:'eight', 'w');
select is(
    refusal('select jobq.fail(' || a.arguments || ')'), a.refusal,
    format('fail(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('null, 1, ''x''', '22004 NULL_ARGUMENT'),
    (format('%L, null, ''x''', :'eight'), '22004 NULL_ARGUMENT'),
    ('''00000000-0000-7000-8000-000000000000'', 1, ''x''', 'JQ001 JOB_NOT_FOUND'),
    (format('%L, 1, ''x'', retry_in => ''-1 s''', :'eight'), '22023 INVALID_ARGUMENT'),
    (format('%L, 1, ''x'', retry_in => ''366 days''', :'eight'),
        '22023 INVALID_ARGUMENT'),
    (format('%L, 1, ''x'', details => ''[1]''', :'eight'), '22023 INVALID_ARGUMENT'),
    (format('%L, 1, ''x'', retry_in => ''365 days''', :'eight'), 'none')
) as a (arguments, refusal);

-- Details
select jobq.enqueue('work') as nine \gset
select from jobq.claim_job(:'nine', 'w');
select jobq.fail(:'nine', 1, 'status 503', 'HTTP_ERROR', retry_in => '0',
    details => '{"status_code": 503, "type": "forged"}');
select from jobq.claim_job(:'nine', 'w');
select jobq.fail(:'nine', 2, 'cannot connect', 'CONNECTION_ERROR', retryable => false);
select results_eq(
    format('select t.error_details from jobq_internal.list_attempts(%L) as t', :'nine'),
    $$ values ('{"status_code": 503, "type": "forged"}'::jsonb), (null) $$,
    'details stay with the attempt that they belong to'
);
select results_eq(
    format('select (p.item -> ''error'')::jsonb from jobq_http.page_attempts(%L) as p', :'nine'),
    $$
    values
    ('{"type": "HTTP_ERROR", "message": "status 503", "status_code": 503}'::jsonb),
    ('{"type": "CONNECTION_ERROR", "message": "cannot connect"}')
    $$,
    'and stand beside type and message, in place of neither'
);

-- Redaction
create temporary table told (nth integer, error text, stored text);
insert into told values
(1, 'at https://user:hunter2@example.org/x', 'at https://***@example.org/x'),
(2, 'Authorization: Bearer abcdef123456', 'Authorization: ***'),
(3, 'sent Bearer abcdef123456 on', 'sent Bearer *** on'),
(4, 'password=hunter2, user=ann', 'password=***, user=ann'),
(5, '{"api_key": "hunter2", "n": 1}', '{"api_key": ***, "n": 1}'),
(6, 'no token at all', 'no token at all'),
(7, 'mail to ann@example.org failed', 'mail to ann@example.org failed');
select jobq.enqueue('secretive', max_attempts => 20) as secretive \gset
create function pg_temp.stored(job_id uuid, error text)
returns text
language plpgsql
as $$
declare
    _attempt integer;
begin
    select c.attempt into _attempt from jobq.claim_job(job_id, 'w') as c;
    perform jobq.fail(job_id, _attempt, error, retry_in => '0');
    return (jobq.get_job(job_id)).last_error;
end
$$;
select is(pg_temp.stored(:'secretive', t.error), t.stored, t.error) from told as t
order by t.nth;
select jobq.configure(redact_emails => true);
select is(
    pg_temp.stored(:'secretive', 'mail to ann@example.org failed'), 'mail to *** failed',
    'e-mail addresses are an option'
);
select from jobq.claim_job(:'secretive', 'w') as c
cross join lateral jobq.fail_many(jsonb_build_array(jsonb_build_object(
    'job_id', c.job_id, 'attempt', c.attempt, 'error', 'secret: hunter2'
))) as f;
select is(
    (jobq.get_job(:'secretive')).last_error, 'secret: ***', 'batches are redacted too'
);

select * from finish();
rollback;
