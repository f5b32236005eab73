-- What jobq_private.next_due() promises.
begin;
select plan(10);

select is(jobq_private.next_due('{a,b}'), null, 'without jobs nothing is due');
select jobq.enqueue('work', queue => 'a', run_at => now() + interval '3 h');
select is(jobq_private.next_due('{a,b}'), now() + interval '3 h', 'the only job decides');
select jobq.enqueue('work', queue => 'a', run_at => now() + interval '2 h',
    priority => -9);
select is(
    jobq_private.next_due('{a,b}'), now() + interval '2 h',
    'the earliest, whatever its priority'
);
select jobq.enqueue('work', queue => 'b', run_at => now() + interval '1 h');
select is(
    jobq_private.next_due('{a,b}'), now() + interval '1 h', 'of all queues that are named'
);
select is(jobq_private.next_due('{a}'), now() + interval '2 h', 'and of no other');
insert into jobq_private.queue (queue, paused_at) values ('b', now());
select is(
    jobq_private.next_due('{b,a}'), now() + interval '2 h', 'a paused queue does not count'
);
select jobq.enqueue('work', queue => 'a',
    run_at => now() - interval '1 h') as past \gset
select ok(
    jobq_private.next_due('{a}') <= clock_timestamp(), 'a moment in the past means work now'
);
select from jobq.claim('{a}', 'w');
select is(jobq_private.next_due('{a}'), now() + interval '2 h', 'a running job does not count');
select jobq.fail(:'past', 1, 'x', retry_in => '1 min');
select is(
    jobq_private.next_due('{a}'), (jobq.get_job(:'past')).run_at, 'a job that retries does'
);
select is(jobq_private.next_due('{}'), null, 'no queues, nothing due');

select * from finish();
rollback;
