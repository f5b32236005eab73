-- What jobq.get_job() promises.
-- Needs more than the core.
begin;
select plan(9);

select jobq.enqueue('work', '{"n": 1}') as job_id \gset
create function pg_temp.same(job_id uuid)
returns boolean
language sql
as 'select j = (select v from jobq.job as v where v.job_id = same.job_id)
from jobq.get_job(same.job_id) as j';
select ok(pg_temp.same(:'job_id'), 'a live job comes as jobq.job shows it');
select from jobq.claim_job(:'job_id', 'w');
select ok(pg_temp.same(:'job_id'), 'and so does a running one');
select jobq.complete(:'job_id', 1, '"r"');
select ok(pg_temp.same(:'job_id'), 'and a finished one');
set local session_replication_role = replica;
update jobq_private.job_archive set finished_at = finished_at - interval '1 h';
set local session_replication_role = origin;
select ok(pg_temp.same(:'job_id'), 'also when the clock was set back before it ended');
select is(
    refusal(format('select jobq.get_job(%L)', a.job_id)), a.refusal,
    format('get_job(%L): %s', a.job_id, a.refusal)
)
from (
    values (null, '22004 NULL_ARGUMENT'),
    ('00000000-0000-7000-8000-000000000000', 'JQ001 JOB_NOT_FOUND'),
    ('ffffffff-ffff-ffff-ffff-ffffffffffff', 'JQ001 JOB_NOT_FOUND'),
    ('12345678-1234-4123-8123-123456789012', 'JQ001 JOB_NOT_FOUND')
) as a (job_id, refusal);
select is(
    refusal(format('select jobq.get_job(%L)', s.schedule_id)), 'JQ001 JOB_IS_RECURRING',
    'a recurring job is none of its runs'
)
from jobq.create_schedule('nightly', 'work', '0 3 * * *') as s (schedule_id);

select * from finish();
rollback;
