-- What jobq.run_schedule() promises.
begin;
select plan(18);

select jobq.create_schedule(
    'report', 'make_report', '0 9 * * MON', payload => '{"n": 1}', queue => 'q', priority => 3
);
select (jobq_internal.get_schedule('report')).next_run_at as next_run_at \gset
create temporary table made as select jobq.run_schedule('report') as job_id;
select results_eq(
    'select j.kind, j.payload, j.queue, j.priority::integer, j.run_at <= clock_timestamp()
    from made as m cross join lateral jobq.get_job(m.job_id) as j',
    $$values ('make_report', '{"n": 1}'::jsonb, 'q', 3, true)$$,
    'the job is what the schedule makes, due now'
);
select is(
    (select j.slot_at from made as m cross join lateral jobq.get_job(m.job_id) as j), null,
    'it takes no slot'
);
select is(
    (jobq_internal.get_schedule('report')).next_run_at, :'next_run_at'::timestamptz,
    'and the schedule fires as before'
);
select results_eq(
    'select a.subject from jobq.audit as a where a.action = ''run_schedule''',
    $$values ('report')$$, 'the audit has it'
);
select jobq.pause_schedule('report');
select lives_ok($$select jobq.run_schedule('report')$$, 'a paused schedule can be run');
select jobq.retire_schedule('report');
select throws_ok($$select jobq.run_schedule('report')$$, 'JQ002', null, 'a retired one cannot');
select throws_ok($$select jobq.run_schedule('nothing')$$, 'JQ007', null, 'nor one that is not there');
select throws_ok('select jobq.run_schedule(null)', '22004', null, 'a schedule must be given');

-- The jobs of its graph are refused as the first one is
select jobq.create_schedule('tree', 'root', '@daily', graph => '{"jobs": [
    {"name": "a", "kind": "leaf", "queue": "small"}, {"name": "b", "kind": "leaf", "queue": "small"}
]}');
select jobq.put_kind('leaf', payload_schema => '{"required": ["n"]}');
select throws_ok($$select jobq.run_schedule('tree')$$, 'JQ006', null, 'a payload must fit its schema');
select jobq.put_kind('leaf');
select jobq.put_queue('small', max_depth => 1);
select throws_ok($$select jobq.run_schedule('tree')$$, 'JQ010', null, 'its queue must have room');
select jobq.put_queue('small', max_depth => 2);
select lives_ok($$select jobq.run_schedule('tree')$$, 'and then it runs');

-- For whom its jobs run
select jobq.create_schedule(
    'import', 'import', every => '1 h', concurrency_key => 'customer-7'
);
select jobq.run_schedule('import') as ran \gset
select is(
    (select j.concurrency_key from jobq.get_job(:'ran') as j),
    'customer-7', 'a job that is run has the schedule''s concurrency key'
);
update jobq_private.job set state = 'cancelled' where kind = 'import';
update jobq_private.schedule set next_run_at = next_run_at - interval '2 h' where name = 'import';
select from jobq_internal.tick();
select is(
    (select distinct j.concurrency_key from jobq.job as j where j.slot_at is not null),
    'customer-7', 'and one that a slot fires'
);
select jobq.update_schedule('import', '{"concurrency_key": "customer-8"}');
select is(
    (select j.concurrency_key from jobq_internal.get_schedule('import') as j), 'customer-8',
    'a new version may have another'
);
select throws_ok(
    $$select jobq.create_schedule('x', 'x', every => '1 h', concurrency_key => '')$$,
    '22023', null, 'it has a byte at least'
);

-- A live job has the key
select jobq.create_schedule('nest', 'bird', every => '1 h', graph => '{"jobs": [{"name": "egg", "kind": "egg"}]}');
select jobq.enqueue('bird', dedup_key => 'nest', dedup => 'skip') as bird \gset
select is(jobq.run_schedule('nest'), :'bird'::uuid, 'a live job with the same key is returned');
select is_empty(
    $$select from jobq.job as j where j.kind = 'egg'$$, 'and gets no graph, which is not its own'
);
select jobq.put_kind('song', dedup => 'debounce', dedup_key => '{bird}');
select jobq.enqueue('song', '{"bird": 1}') as song \gset
select jobq.create_schedule('overlaps', 'song', '0 4 * * *', payload => '{"bird": 1}');
select isnt(
    jobq.run_schedule('overlaps'), :'song'::uuid, 'if its jobs may overlap, the key of the kind does not apply'
);

select * from finish();
rollback;
