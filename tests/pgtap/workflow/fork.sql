-- What fork() promises.
begin;
select plan(13);

select jobq.enqueue('agent', '{"a": 1}', queue => 'q', metadata => '{"m": 1}') as job_id \gset
select from jobq.claim_job(:'job_id', 'w');
select jobq.save_step(:'job_id', 1, 'one', '1');
select child_id from jobq.start_children(:'job_id', 1, '[{"name": "tool", "kind": "tool"}]') \gset
select jobq.save_step(:'job_id', 1, 'sleep', '2');
select jobq.signal(:'job_id', 'sleep:' || :'job_id', '3');
select from jobq.wait_for(:'job_id', 1, 'sleep:' || :'job_id');
select jobq.save_step(:'job_id', 1, 'two', '4');
select jobq.fork(:'job_id', 'two') as fork_id \gset
select results_eq(
    format('select kind, payload, queue, state collate "default", metadata from jobq.job where job_id = %L', :'fork_id'),
    format($$ values ('agent', '{"a": 1}'::jsonb, 'q', 'queued', '{"m": 1, "fork_of": "%s"}'::jsonb) $$, :'job_id'),
    'a copy is enqueued'
);
select results_eq(
    format('select name, value from jobq.list_steps(%L)', :'fork_id'),
    format('select replace(name, %L, %L), value from jobq.list_steps(%L) where name <> ''two''',
        :'job_id', :'fork_id', :'job_id'),
    'with the steps before this one, under the names that its handler asks for'
);
select is(
    (select count(*) from jobq.list_steps(:'fork_id')), 4::bigint, 'all of them'
);
select from jobq.claim_job(:'fork_id', 'w');
select is(
    jobq.save_step(:'fork_id', 1, 'one', '7'), '1'::jsonb, 'what is recorded is not done again'
);
select is(
    (select child_id from jobq.start_children(:'fork_id', 1, '[{"name": "tool", "kind": "tool"}]')),
    :'child_id', 'what was called is not called again'
);
select is(
    (select outcome from jobq.call_children(:'fork_id', 1, '[{"name": "tool"}]')), 'waiting',
    'and can be waited for'
);
select from jobq.claim_job(:'child_id', 'w');
select jobq.complete(:'child_id', 1, '8');
select jobq_private.resolve();
select from jobq.claim_job(:'fork_id', 'w');
select is(
    (select ends -> 0 ->> 'result' from jobq.call_children(:'fork_id', 2, '[{"name": "tool"}]')),
    '8', 'until it ends'
);
select jobq.fork(:'job_id') as all_id \gset
select is((select count(*) from jobq.list_steps(:'all_id')), 5::bigint, 'a fork takes over all steps');
select is(
    (select state collate "default" from jobq.job where job_id = :'job_id'), 'running',
    'the job itself stays as it is'
);
select is(
    (select count(*) from jobq.audit where action = 'fork'), 2::bigint, 'forks are audited'
);
select is(
    refusal(format('select jobq.fork(%L, ''three'')', :'job_id')), '22023 INVALID_ARGUMENT',
    'the step must be recorded'
);
select is(
    refusal('select jobq.fork(gen_random_uuid())'), 'JQ001 JOB_NOT_FOUND',
    'the job must exist'
);

-- A message that did not come in time
select jobq.enqueue('listens', queue => 'listens') as deaf_id \gset
select from jobq.claim_job(:'deaf_id', 'w');
select jobq.wait_for(:'deaf_id', 1, format('message:%s:chat:000000001', :'deaf_id'), '0');
select is(
    jobq.send_message(jobq.fork(:'deaf_id'), 'chat', '"hello"'), 1,
    'a message that the job did not receive is not counted'
);

select * from finish();
rollback;
