-- What jobq_http.show_dead_jobs() promises: groups that died of the same.
begin;
select plan(7);

select is(jobq_http.show_dead_jobs() ->> 'groups', '[]', 'at first there is none');
select jobq.enqueue('k', metadata => jsonb_build_object('n', n, 'tenant', 'a'))
from generate_series(1, 4) as n;
select jobq.fail(c.job_id, 1, 'no host ' || c.kind, case when n = 1 then 'OTHER' else 'DNS' end,
    retryable => false)
from (select *, row_number() over (order by job_id) as n from jobq.claim('{default}', 'w', 4)) as c;

select is(json_array_length(jobq_http.show_dead_jobs() -> 'groups'), 2, 'each code is a group');
select is(jobq_http.show_dead_jobs() -> 'groups' -> 0 ->> 'error_code', 'DNS', 'the largest first');
select is(jobq_http.show_dead_jobs() -> 'groups' -> 0 ->> 'jobs', '3', 'with how many');
select is((jobq_http.show_dead_jobs() -> 'groups' -> 0 -> 'metadata')::jsonb, '{"tenant": "a"}',
    'and what all have in common');
select is(jobq_http.show_dead_jobs(2) ->> 'is_all', 'false', 'a look ends');
select throws_ok('select jobq_http.show_dead_jobs(0)', '22023', null, 'but not before it began');

select * from finish();
rollback;
