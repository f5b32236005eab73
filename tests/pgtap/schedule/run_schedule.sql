-- What jobq.run_schedule() promises.
begin;
select plan(8);

select jobq.create_schedule(
    'report', 'make_report', '0 9 * * MON', payload => '{"n": 1}', queue => 'q', priority => 3
);
select (jobq.get_schedule('report')).next_run_at as next_run_at \gset
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
    (jobq.get_schedule('report')).next_run_at, :'next_run_at'::timestamptz,
    'and the schedule fires as before'
);
select results_eq(
    'select a.subject from jobq.audit as a where a.action = ''run schedule''',
    $$values ('report')$$, 'the audit has it'
);
select jobq.pause_schedule('report');
select lives_ok($$select jobq.run_schedule('report')$$, 'a paused schedule can be run');
select jobq.retire_schedule('report');
select throws_ok($$select jobq.run_schedule('report')$$, 'JQ002', null, 'a retired one cannot');
select throws_ok($$select jobq.run_schedule('nothing')$$, 'JQ007', null, 'nor one that is not there');
select throws_ok('select jobq.run_schedule(null)', '22004', null, 'a schedule must be given');

select * from finish();
rollback;
