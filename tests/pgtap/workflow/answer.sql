-- What ask(), answer() and list_waits() promise.
begin;
select plan(45);

-- A question waits for a person.
select jobq.enqueue('refund', queue => 'money') as job_id \gset
select from jobq.claim_job(:'job_id', 'worker-1');
select results_eq(
    format($$ select outcome, payload from jobq.ask(%L, 1, 'refund', 'Refund 5 euro?', $f${
        "type": "object", "required": ["cents"],
        "properties": {"cents": {"type": "integer", "maximum": 500}}
    }$f$, '3 days') $$, :'job_id'),
    $$ values ('waiting', null::jsonb) $$, 'the job is given back until somebody answers'
);
select results_eq(
    format('select state collate "default", worker, attempts from jobq.job where job_id = %L',
        :'job_id'),
    $$ values ('queued', null::text, 0) $$, 'it holds neither worker nor attempt'
);
select results_eq(
    $$ select name collate "default", kind, queue, question, form ->> 'type', asked_by, since <= clock_timestamp(),
        expires_at - since between '71 h' and '73 h'
    from jobq.list_waits() $$,
    $$ values ('refund', 'refund', 'money', 'Refund 5 euro?', 'object', 'worker-1', true, true) $$,
    'the list shows what it asks, since when and until when'
);
select is(
    (select explanation like 'waits for a person: Refund 5 euro? since %'
    from jobq.explain(:'job_id') limit 1), true, 'explain() names the question'
);
select is((select count(*) from jobq.list_waits('money')), 1::bigint, 'its queue has it');
select is((select count(*) from jobq.list_waits('other')), 0::bigint, 'another queue has not');
select is((select count(*) from jobq.list_waits(job_id => :'job_id')), 1::bigint, 'its job has it');
select is(
    array(
        select (select count(*) from jobq.list_waits(since => w.since + s.after, from_job => s.job_id))
        from jobq.list_waits() as w, lateral (values
            (interval '0', null::uuid), ('1 us', null), ('0', w.job_id),
            ('0', 'ffffffff-ffff-ffff-ffff-ffffffffffff'), ('-1 us', 'ffffffff-ffff-ffff-ffff-ffffffffffff')
        ) as s (after, job_id)
    ), '{1,0,1,0,1}', 'a later page begins with the time and the job of the last question'
);
select is(jsonb_array_length(jobq_http.show_workflows()::jsonb -> 'waits'), 0,
    'it is no event among others');

-- What is no answer.
select is(refusal(format(a.statement, :'job_id')), a.refusal, a.claim)
from (
    values
    ($$ select jobq.answer(%L, 'refund', true, '{}') $$, 'JQ006 PAYLOAD_INVALID',
        'an approval without what the form requires'),
    ($$ select jobq.answer(%L, 'refund', true, '{"cents": 501}') $$, 'JQ006 PAYLOAD_INVALID',
        'data that the form does not allow'),
    ($$ select jobq.answer(%L, 'refund', true, '{"cents": 5}', repeat('x', 513)) $$,
        '22023 INVALID_ARGUMENT', 'a long reason'),
    ($$ select jobq.answer(%L, 'refund', true, '{"cents": 5}', answered_by => '') $$,
        '22023 INVALID_ARGUMENT', 'nobody'),
    ($$ select jobq.answer(%L, null, true) $$, '22004 NULL_ARGUMENT', 'no name'),
    ($$ select jobq.answer(%L, '', true) $$, '22023 INVALID_ARGUMENT', 'an empty name'),
    ($$ select jobq.answer(%L, 'refund', null) $$, '22004 NULL_ARGUMENT', 'neither yes nor no'),
    ($$ select jobq.answer(%L, 'other', true) $$, 'JQ001 QUESTION_NOT_FOUND', 'another question'),
    ($$ select jobq.answer(gen_random_uuid(), 'refund', true) $$, 'JQ001 JOB_NOT_FOUND',
        'another job'),
    ($$ select jobq.signal(%L, 'answer:refund', '{"is_approved": true}') $$,
        '22023 INVALID_ARGUMENT', 'a signal'),
    ($$ select jobq.emit('answer:refund') $$, '22023 INVALID_ARGUMENT', 'an event')
) as a (statement, refusal, claim);
select is(
    detail(format('select jobq.answer(%L, ''refund'', true, ''{}'')', :'job_id')),
    'the data do not match the form of question refund: data.cents is missing',
    'the error says that the data of the answer are meant'
);
select matches(
    detail(format('select jobq.answer(%L, repeat(''x'', 250), true)', :'job_id')),
    '^name must', 'and which argument is too long'
);
select is((select count(*) from jobq.audit where action in ('approve', 'reject')), 0::bigint,
    'what is refused is not audited');

-- The answer.
select jobq_http.act_for('API key shop');
select lives_ok(
    format($$ select jobq.answer(%L, 'refund', true, '{"cents": 500}', 'a regular', 'ada') $$,
        :'job_id'),
    'an answer that fits is taken'
);
select set_config('jobq.acting_for', '', true);
select is((select count(*) from jobq.list_waits()), 0::bigint, 'nothing waits for a person now');
select results_eq(
    format($$ select action, reason, acting_for from jobq.audit where subject = %L $$, :'job_id'),
    $$ values ('approve', 'refund: a regular', 'API key shop for ada') $$,
    'the audit has who answered, and why'
);
select is(
    (select run_at <= clock_timestamp() from jobq.job where job_id = :'job_id'), true,
    'the job is due at once'
);
select is(
    refusal(format($$ select jobq.answer(%L, 'refund', false) $$, :'job_id')),
    'JQ002 QUESTION_CLOSED', 'a second answer comes too late'
);
select from jobq.claim_job(:'job_id', 'worker-2');
select results_eq(
    format($$ select outcome, payload from jobq.ask(%L, 2, 'refund', 'Refund 5 euro?') $$,
        :'job_id'),
    $$ values ('arrived', '{"is_approved": true, "data": {"cents": 500}, "reason": "a regular",
        "by": "API key shop for ada"}'::jsonb) $$, 'the job is told the first one'
);
select is(
    refusal(format($$ select jobq.answer(%L, 'refund', false) $$, :'job_id')),
    'JQ002 QUESTION_CLOSED', 'a later one is still refused'
);

-- A rejection, of a question without a form.
select is(
    (jobq.ask(:'job_id', 2, 'sure', 'Are you sure?')).outcome, 'waiting', 'it asks again'
);
select is((select expires_at from jobq.list_waits()), null, 'without a limit');
select jobq.answer(:'job_id', 'sure', false);
select is(
    (select reason from jobq.audit where action = 'reject'), 'sure', 'a rejection is audited'
);
select from jobq.claim_job(:'job_id', 'worker-2');
select is(
    (jobq.ask(:'job_id', 3, 'sure', 'Are you sure?')).payload,
    jsonb_build_object('is_approved', false, 'data', null, 'reason', null, 'by', session_user),
    'and told, with the session''s user'
);

-- Its time is over.
select from jobq.ask(:'job_id', 3, 'late', 'Still there?', timeout => '1 h');
update jobq_private.waiter set deadline = now() - interval '1 s' where job_id = :'job_id';
select is((select count(*) from jobq.list_waits()), 0::bigint, 'what nobody answered is closed');
select is(
    refusal(format($$ select jobq.answer(%L, 'late', true) $$, :'job_id')),
    'JQ002 QUESTION_CLOSED', 'and cannot be answered'
);
update jobq_private.job set run_at = now() where job_id = :'job_id';
select from jobq.claim_job(:'job_id', 'worker-2');
select is(
    (jobq.ask(:'job_id', 4, 'late', 'Still there?')).outcome, 'timed_out', 'the job is told so'
);
select is(
    refusal(format($$ select jobq.answer(%L, 'late', true) $$, :'job_id')),
    'JQ002 QUESTION_CLOSED', 'for good'
);

-- What cannot be asked.
select is(refusal(format('select jobq.ask(%L, %s)', :'job_id', a.arguments)), a.refusal,
    format('ask(%s): %s', left(a.arguments, 40), a.refusal))
from (
    values
    ('1, ''a'', ''b''', 'JQ003 LEASE_LOST'),
    ('4, null, ''b''', '22004 NULL_ARGUMENT'),
    ('4, repeat(''x'', 250), ''b''', '22023 INVALID_ARGUMENT'),
    ('4, ''a'', repeat(''x'', 4097)', '22023 INVALID_ARGUMENT'),
    ('4, ''a'', ''b'', ''[]''', 'JQ006 SCHEMA_INVALID'),
    ('4, ''a'', ''b'', ''{"oneOf": []}''', 'JQ006 SCHEMA_INVALID'),
    ('4, ''a'', ''b'', timeout => ''-1 s''', '22023 INVALID_ARGUMENT')
) as a (arguments, refusal);

select * from finish();
rollback;
