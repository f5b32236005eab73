-- What jobq.due_in() promises of jobs with a concurrency key.
begin;
select plan(1);

select jobq.enqueue('work', queue => 'keyed', concurrency_key => 'k');
select is(jobq.due_in('{keyed}'), interval '0', 'zero where a key has work');

select * from finish();
rollback;
