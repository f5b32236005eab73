-- A job that could not start in time is dead, EXPIRED, whoever would claim it.
-- Needs more than the core.
begin;
select plan(15);

create function pg_temp.expired(jobs integer, key text default null)
returns uuid[]
language plpgsql
as $$
declare
    _ids uuid[];
begin
    _ids := array(
        select jobq.enqueue('k', concurrency_key => key, expires_at => now() + interval '1 h')
        from generate_series(1, jobs)
    );
    update jobq_private.job as j
    set expires_at = clock_timestamp() - interval '1 s'
    where j.job_id = any(_ids);
    return _ids;
end
$$;
create function pg_temp.ends(ids uuid[])
returns text
language sql
as $$
    select string_agg(distinct format('%s %s', j.state, j.last_error_code), ', ')
    from jobq.job as j
    where j.job_id = any(ids)
$$;

select throws_ok(
    format('select jobq.enqueue(''k'', %s)', a.argument), '22023', null, a.argument || ' is refused'
)
from (
    values
    ('expires_at => now()'), ('expires_at => ''infinity'''),
    ('run_at => now() + interval ''2 h'', expires_at => now() + interval ''1 h''')
) as a (argument);
select is((select count(*)::integer from jobq.job), 0, 'and there is no job then');
select e.job_id as later
from jobq.enqueue_many(jsonb_build_array(jsonb_build_object(
    'kind', 'k', 'queue', 'later', 'expires_at', now() + interval '1 day'
))) as e \gset
select is(
    (jobq.get_job(:'later')).expires_at, now() + interval '1 day', 'enqueue_many() takes it too'
);
select jobq.enqueue('k', expires_at => now() + interval '1 h') as fresh \gset

select pg_temp.expired(3) as ids \gset
select results_eq(
    $$ select job_id from jobq.claim('{default}', 'w', 10) $$,
    format('values (%L::uuid)', :'fresh'), 'claim() takes what has not expired'
);
select is(pg_temp.ends(:'ids'), 'dead EXPIRED', 'and ends what has');
select is(
    (select a.previous_state || ' ' || a.attempt from jobq_private.job_archive as a limit 1),
    'queued 0', 'without an attempt'
);

select pg_temp.expired(2, 'a key') as ids \gset
select is_empty($$ select from jobq.claim('{default}', 'w', 10) $$, 'the same holds for keys');
select is(pg_temp.ends(:'ids'), 'dead EXPIRED', 'whose jobs end as well');

select pg_temp.expired(1) as ids \gset
select is_empty(
    format('select from jobq.claim_job(%L, ''w'')', (:'ids'::uuid[])[1]), 'and for claim_job()'
);

select pg_temp.expired(3) as ids \gset
select is(jobq_private.expire_jobs(2), 2::bigint, 'maintain() ends what nobody claims, bounded');
select jobq_private.expire_jobs(10);
select is(pg_temp.ends(:'ids'), 'dead EXPIRED', 'as a claim would');

select jobq.redrive((:'ids'::uuid[])[1]);
select is(
    (jobq.get_job((:'ids'::uuid[])[1])).expires_at, null, 'a job that is redriven does not expire'
);
select jobq.change_many(
    jsonb_build_object('expires_at', now() + interval '1 min'), array[(:'ids'::uuid[])[1]]
);
select is(
    (jobq.get_job((:'ids'::uuid[])[1])).expires_at, now() + interval '1 min',
    'change_many() gives it a new time'
);

select * from finish();
rollback;
