-- What jobq.due_in() promises.
begin;
select plan(8);

select is(jobq.due_in('{a}'), null, 'without jobs there is nothing to wake up for');
select jobq.enqueue('work', queue => 'a', run_at => now() + interval '1 h') as later
\gset
select ok(
    d.due_in between (now() + interval '1 h') - clock_timestamp() and interval '1 h',
    'a worker may sleep until the next job is due, by the database''s clock'
)
from jobq.due_in('{a,b}') as d (due_in);
select is(jobq.due_in('{b}'), null, 'jobs of other queues do not count');
select jobq.enqueue('work', queue => 'b', run_at => now() - interval '1 h');
select ok(jobq.due_in('{a,b}') <= '0', 'a job that is due already leaves no sleep');
select is(jobq.due_in('{a,b}'), interval '0', 'and says zero');
insert into jobq_private.queue (queue, paused_at) values ('b', now());
select ok(jobq.due_in('{a,b}') > '59 min', 'unless its queue is paused');
select is(jobq.due_in('{}'), null, 'no queues, nothing due');
select throws_ok('select jobq.due_in(null)', '22004', null, 'null is refused');

select * from finish();
rollback;
