-- What jobq.cancel_many() promises.
begin;
select plan(9);

create temporary table made as
select n, jobq.enqueue('work', queue => 'q', priority => -n) as job_id
from generate_series(1, 3) as n;
select jobq.enqueue('work', queue => 'aside');
select jobq.claim('{q}', 'w', 1);

select results_eq(
    'select m.n, c.outcome from jobq.cancel_many(queue => ''q'', dry_run => true) as c
    join made as m using (job_id) order by m.n',
    $$values (1, 'running'), (2, 'queued'), (3, 'queued')$$,
    'a dry run says which jobs, and their states'
);
select is(
    (select count(*) from jobq.job as j where j.state = 'cancelled'), 0::bigint,
    'and cancels none'
);
select results_eq(
    'select m.n, c.outcome
    from jobq.cancel_many(queue => ''q'', reason => ''why'') as c
    join made as m using (job_id) order by m.n',
    $$values (1, 'cancel_requested'), (2, 'cancelled'), (3, 'cancelled')$$,
    'waiting jobs are cancelled, running ones asked to stop'
);
select is(
    (select count(*) from jobq.job as j where j.cancel_reason = 'why'), 3::bigint,
    'the reason is kept with each job'
);
select is(
    (select count(*) from jobq.audit as a where a.action = 'cancel'), 3::bigint,
    'the audit has each of them'
);
select is_empty(
    'select jobq.cancel_many(queue => ''aside'', state => ''retrying'')',
    'only jobs in the state asked for'
);
select throws_ok('select jobq.cancel_many()', '22023', null, 'a filter is needed');
select throws_ok(
    'select jobq.cancel_many(queue => ''q'', state => ''dead'')', '22023', null,
    'jobs that have ended are not cancelled'
);
select throws_ok(
    'select jobq.cancel_many(array(select job_id from made))', 'JQ002', null,
    'named jobs must all be live'
);

select * from finish();
rollback;
