-- A worker of more queues than a claim looks at one by one gets what it would get from each.
-- Needs more than the core.
begin;
select plan(13);

create function pg_temp.queues()
returns text[]
language sql
return (select array_agg('q' || n order by n) from generate_series(1, 40) as n);

create function pg_temp.claimed(jobs integer default 1)
returns text[]
language sql
as 'select array_agg(queue) from jobq.claim(pg_temp.queues(), ''w'', jobs)';

select is(pg_temp.claimed(), null, 'forty empty queues have nothing');
select is(jobq.due_in(pg_temp.queues()), null, 'and nothing comes');
select jobq.enqueue('work', queue => 'q9', run_at => now() + interval '1 h', priority => 9);
select is(pg_temp.claimed(), null, 'a job due later is not claimed');
select is(
    jobq_private.next_due(pg_temp.queues()), now() + interval '1 h', 'but is when something comes'
);
select count(*) from (
    select jobq.enqueue('work', queue => 'q' || n) from generate_series(1, 40, 7) as n
) as j;
select is(
    pg_temp.claimed(4), '{q1,q8,q15,q22}', 'queues come in the order in which they are named'
);
select jobq.pause_queue('q29');
select is(pg_temp.claimed(4), '{q36}', 'but for one that is paused');
select ok(jobq.due_in(pg_temp.queues()) > '50 min', 'which counts for no sleep either');
select jobq.resume_queue('q29');
select ok(jobq.due_in(pg_temp.queues()) <= '0', 'until it goes on');
select is(pg_temp.claimed(4), '{q29}', 'and is claimed');

select jobq.enqueue('work', queue => 'q30', concurrency_key => 'k');
select ok(jobq.due_in(pg_temp.queues()) <= '0', 'a job with a key is work');
select is(pg_temp.claimed(4), '{q30}', 'and is found');

select jobq.put_kind('limited', max_running => 1);
select count(*) from (
    select jobq.enqueue('limited', queue => 'q' || n) from generate_series(31, 32) as n
) as j;
select is(pg_temp.claimed(4), '{q31}', 'of a kind that has a limit so many');
select jobq.release(j.job_id, j.attempt, now() + interval '1 h')
from jobq.job as j where j.queue = 'q31';
select is(pg_temp.claimed(4), '{q32}', 'and from another queue when there is room again');

select * from finish();
rollback;
