-- What jobq.wait() promises to one session; what passes between sessions is in
-- tests/python/test_result.py. Who may call it is in security.sql.
begin;
select plan(14);

create function pg_temp.held()
returns text
language sql
as $$
select string_agg(format('%s:%s', c.name, l.objid), ' ' order by c.name)
from pg_catalog.pg_locks as l
join unnest(array['ending', 'awaiting', 'awaiting_events']) as c (name)
    on l.classid::bigint = jobq_private.lock_class(c.name)
where l.locktype = 'advisory' and l.pid = pg_backend_pid() and l.mode = 'ShareLock'
$$;

create function pg_temp.announced(job_id uuid)
returns text
language sql
as $$select format('awaiting:0 ending:%s', hashtext(job_id::text) & 1023)$$;
select is(
    refusal(format('select jobq.wait(%L)', a.job_id)), a.refusal,
    format('wait(%L): %s', a.job_id, a.refusal)
)
from (
    values (null, '22004 NULL_ARGUMENT'),
    ('00000000-0000-7000-8000-000000000000', 'JQ001 JOB_NOT_FOUND')
) as a (job_id, refusal);
select is(pg_temp.held(), null, 'nothing is locked for a job that is not known');

select jobq.enqueue('work') as job_id \gset
select is(jobq.wait(:'job_id'), false, 'a job that is queued has not ended');
select is(
    pg_temp.held(), pg_temp.announced(:'job_id'),
    'it is known that somebody waits, and for which job'
);
select from jobq.claim_job(:'job_id', 'w');
select is(jobq.wait(:'job_id'), false, 'nor has one that runs');
select jobq.fail(:'job_id', 1, 'broke', retry_in => '0');
select is(jobq.wait(:'job_id'), false, 'nor one that is tried again');
select is(
    pg_temp.held(), pg_temp.announced(:'job_id'), 'saying so again adds nothing'
);
select jobq.end_wait();
select is(pg_temp.held(), null, 'end_wait() ends that');

select from jobq.claim_job(:'job_id', 'w');
select jobq.complete(:'job_id', 2);
select is(jobq.wait(:'job_id'), true, 'a job that succeeded has ended');
select jobq.enqueue('work') as cancelled \gset
select jobq.cancel(:'cancelled');
select is(jobq.wait(:'cancelled'), true, 'and so has one that was cancelled');
select jobq.redrive(:'cancelled');
select is(jobq.wait(:'cancelled'), false, 'until it is brought back');
select jobq.end_wait();
select is(pg_temp.held(), null, 'end_wait() ends waiting for all of them');
select ok(
    not has_function_privilege(r.role, 'jobq_private.tell_ended(uuid[])', 'execute'),
    'nobody may tell of an end that was none'
)
from (values ('jobq_producer')) as r (role);

select * from finish();
rollback;
