-- What the dead_letter_kind of a kind promises.
begin;
select plan(13);

create function pg_temp.letters(job_id uuid)
returns bigint
language sql
return (
    select count(*) from jobq.job as j
    where j.kind = 'letter' and j.metadata ->> 'dead_letter_of' = letters.job_id::text
);

select jobq.put_kind('letter', queue => 'letters', payload_schema => '{"type": "object"}');
select jobq.put_kind('charge', max_attempts => 2, dead_letter_kind => 'letter');
select jobq.enqueue('charge', '{"n": 1}', metadata => '{"tenant": 5}') as job \gset
select from jobq.claim('{default}', 'w');
select jobq.fail(:'job', 1, 'boom', 'E', retry_in => '0 s');
select is(pg_temp.letters(:'job'), 0::bigint, 'a job that is retried leaves no letter');
select from jobq.claim('{default}', 'w');
select jobq.fail(:'job', 2, 'boom again', 'E');
select results_eq(
    'select queue, state, payload from jobq.job where kind = ''letter''',
    format($$ values ('letters', 'queued' collate "C", '{
        "job_id": "%s", "kind": "charge", "queue": "default", "payload": {"n": 1},
        "metadata": {"tenant": 5}, "error_code": "E", "error": "boom again", "attempts": 2
    }'::jsonb) $$, :'job'),
    'a dead one leaves a job of the declared kind, with what is needed to act on it'
);
select jobq.redrive(:'job');
select from jobq.claim('{default}', 'w');
select jobq.fail(:'job', 3, 'boom', 'E', retryable => false);
select is(pg_temp.letters(:'job'), 2::bigint, 'each death leaves one');

-- However it dies
select jobq.enqueue('charge', expires_at => now() + interval '1 ms') as expired \gset
select pg_sleep(0.01);
select from jobq.claim('{default}', 'w');
select is(pg_temp.letters(:'expired'), 1::bigint, 'also where it expires');
select jobq.enqueue('charge') as raw \gset
select from jobq.claim('{default}', 'w');
update jobq.job set state = 'dead' where job_id = :'raw';
select is(pg_temp.letters(:'raw'), 1::bigint, 'also by a raw update');
select array_agg(jobq.enqueue('charge', priority => -1)) as jobs from generate_series(1, 3) \gset
select from jobq.claim('{default}', 'w', 9);
select is(
    (
        select count(*) from jobq.fail_many((
            select jsonb_agg(jsonb_build_object('job_id', j, 'attempt', 1, 'error', 'x', 'retryable', false))
            from unnest(:'jobs'::uuid[]) as j
        )) as f where f.state = 'dead'
    ),
    3::bigint, 'many die together'
);
select is(
    (select sum(pg_temp.letters(j)) from unnest(:'jobs'::uuid[]) as j), 3::numeric, 'and each leaves its letter'
);

-- What leaves none
select jobq.enqueue('charge') as cancelled \gset
select jobq.cancel(:'cancelled');
select is(pg_temp.letters(:'cancelled'), 0::bigint, 'a cancelled job leaves none');
select jobq.put_kind('letter', queue => 'letters', dead_letter_kind => 'charge');
select job_id as letter from jobq.claim('{letters}', 'w') \gset
select jobq.fail(:'letter', 1, 'boom', 'E', retryable => false);
select is_empty(
    format('select from jobq.job where metadata ->> ''dead_letter_of'' = %L', :'letter'),
    'the death of a letter leaves none'
);

-- A letter that cannot be stored
select jobq.put_queue('letters', max_depth => 1);
select jobq.enqueue('charge') as full \gset
select from jobq.claim_job(:'full', 'w');
select is(jobq.fail(:'full', 1, 'boom', 'E', retryable => false), 'dead', 'a full queue does not keep a job alive');
select is(pg_temp.letters(:'full'), 0::bigint, 'then there is no letter');
select ok(
    (
        select min(l.message) ~ '^no dead letter of kind letter: .*queue letters'
        from jobq_private.job_log as l where l.job_id = :'full'
    ),
    'and its log says why'
);
select is(
    refusal('select jobq.put_kind(''a'', dead_letter_kind => ''a'')'), '22023 INVALID_ARGUMENT',
    'a kind is not its own dead letter'
);

select * from finish();
rollback;
