-- What jobq_internal.list_logs() promises.
begin;
select plan(4);

select jobq.enqueue('work') as job_id, jobq.enqueue('work') as other \gset
select is_empty(format('select jobq_internal.list_logs(%L)', :'job_id'), 'a new job has no log');
select from jobq.claim('{default}', 'w', 2);
select jobq.fail(:'job_id', 1, 'again', retry_in => '0');
select from jobq.claim_job(:'job_id', 'w');
select jobq.log(:'job_id', 1, 'INFO', n::text) from generate_series(1, 200) as n;
select jobq.log(:'other', 1, 'INFO', 'other');
select jobq.log(:'job_id', 2, 'ERROR', 'last');
select results_eq(
    format('select attempt, level, message from jobq_internal.list_logs(%L)', :'job_id'),
    $$
    (select 1, 'INFO', g.n::text from generate_series(1, 200) as g (n) order by g.n)
    union all select 2, 'ERROR', 'last'
    $$,
    'the lines of one job come in the order in which they were logged'
);
select is(
    refusal(format('select jobq_internal.list_logs(%L)', a.job_id)), a.refusal,
    format('list_logs(%L): %s', a.job_id, a.refusal)
)
from (
    values (null, '22004 NULL_ARGUMENT'),
    ('00000000-0000-7000-8000-000000000000', 'JQ001 JOB_NOT_FOUND')
) as a (job_id, refusal);

select * from finish();
rollback;
