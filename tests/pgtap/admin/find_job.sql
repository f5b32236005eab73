-- What jobq_internal.find_job() promises.
begin;
select plan(5);

select jobq.enqueue('a', idempotency_key => 'k') as job_id \gset
select jobq.enqueue('b') \gset

select is(jobq_internal.find_job('a', 'k'), :'job_id'::uuid, 'a key leads to its job');
select is(jobq_internal.find_job('b', 'k'), null, 'a key belongs to its kind');
select is(jobq_internal.find_job('a', 'l'), null, 'a key that nobody has used leads nowhere');
select throws_ok($$ select jobq_internal.find_job('a', null) $$, '22004', null, 'a key is needed');
select jobq.cancel(:'job_id') \gset
select is(jobq_internal.find_job('a', 'k'), :'job_id'::uuid, 'a finished job is found, too');

select finish();
rollback;
