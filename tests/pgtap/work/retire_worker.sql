-- What jobq.retire_worker() promises.
-- Needs more than the core.
begin;
select plan(3);

select jobq.enqueue('work') as job_id \gset
select from jobq.claim_job(:'job_id', 'w');
select from jobq.heartbeat('w', '{}', '{}');
select from jobq.heartbeat('other', '{}', '{}');
select jobq.retire_worker('w');
select results_eq(
    'select worker
    from jobq.worker', $$ values ('other') $$, 'the worker is off the list'
);
select is(jobq.complete(:'job_id', 1), true, 'its leases do not depend on that');
select lives_ok('select jobq.retire_worker(''w'')', 'once more changes nothing');

select * from finish();
rollback;
