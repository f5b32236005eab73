-- What jobq_internal.advance_clock() promises to tests.
begin;
select plan(10);

select jobq.enqueue('k', run_at => now() + interval '1 h') as later \gset
select jobq.enqueue('k', run_at => now() + interval '1 h', concurrency_key => 'a') as keyed \gset
select jobq.enqueue(
    'k', run_at => now() + interval '3 h', expires_at => now() + interval '4 h'
) as expiring \gset
select is_empty($$ select from jobq.claim('{default}', 'w', 10) $$, 'nothing is due');
select is(jobq_internal.advance_clock('1 h 1 s'), 3::bigint, 'an hour passes for all jobs that wait');
select results_eq(
    $$ select job_id from jobq.claim('{default}', 'w', 10) order by job_id $$,
    format('values (%L::uuid), (%L)', :'later', :'keyed'), 'and what was due in it can run'
);
select jobq_internal.advance_clock('3 h');
select is_empty($$ select from jobq.claim('{default}', 'w', 10) $$, 'what expires meanwhile');
select is((jobq.get_job(:'expiring')).last_error_code, 'EXPIRED', 'is dead');
select jobq.put_endpoint('send', 'HTTP', '{"url": "https://a.example"}');
select jobq.pause_endpoint('send');
select jobq.enqueue('send') as delivery \gset
select is_empty($$ select from jobq.claim('{default}', 'w') $$, 'a delivery to a paused endpoint');
select jobq_internal.advance_clock('1 h');
select jobq.resume_endpoint('send');
select is(
    (select job_id from jobq.claim('{default}', 'w')), :'delivery'::uuid, 'is resumed later, too'
);
select throws_ok('select jobq_internal.advance_clock(null)', '22004', null, 'null is refused');
select throws_ok('select jobq_internal.advance_clock(''-1 s'')', '22023', null, 'and so is the past');
select is(
    (
        select count(*)::integer from pg_roles as r
        where r.rolname like 'jobq\_%' and r.rolname <> 'jobq_owner'
        and has_function_privilege(r.rolname, 'jobq_internal.advance_clock(interval)', 'execute')
    ),
    0, 'no role may move the clock'
);

select * from finish();
rollback;
