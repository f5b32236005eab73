-- What jobq_internal.recover() promises.
-- Needs more than the core.
begin;
select plan(16);

create temporary table batch (n integer, job_id uuid);
insert into batch
select n, jobq.enqueue('work', max_attempts => case n when 2 then 1 else 50 end)
from generate_series(1, 6) as n;
select from jobq.claim('{default}', 'w', 6);
select jobq.cancel(b.job_id) from batch as b where b.n = 3;
-- Let the leases of these jobs have ended, the first named first.
create function pg_temp.expire(variadic n integer[])
returns void
language plpgsql
as $$
begin
    set local session_replication_role = replica;
    update jobq_private.job as j
    set lease_expires_at
        = clock_timestamp() - interval '1 min' + o.ordinal * interval '1 s'
    from batch as b
    join unnest(expire.n) with ordinality as o (n, ordinal) on o.n = b.n
    where b.job_id = j.job_id and j.state = 'running';
    set local session_replication_role = origin;
end
$$;

select is_empty(
    'select * from jobq_internal.recover()', 'a lease that has not ended is left alone'
);
select pg_temp.expire(1, 2, 3);
select results_eq(
    'select b.n, r.attempt, r.state from jobq_internal.recover() as r join batch as b
    using (job_id)
    order by b.n',
    $$ values (1, 1, 'retrying'), (2, 1, 'dead'), (3, 1, 'cancelled') $$,
    'a job retries with attempts left, else it is dead, or cancelled where asked'
);
select results_eq(
    $$
    select j.state, j.attempts, j.run_at between now() and clock_timestamp(), j.worker,
        j.lease_expires_at, j.last_error_code, j.last_error
    from jobq.job as j join batch as b using (job_id) where b.n = 1
    $$,
    $$
    values ('retrying' collate "C", 1, true, null::text, null::timestamptz,
        'LEASE_EXPIRED',
        'the lease of worker w expired')
    $$,
    'it may run at once, its attempt counts, and it says whose lease expired'
);
select is_empty('select * from jobq_internal.recover()', 'a job is taken back once');
select results_eq(
    $$
    select t.attempt, t.state, t.worker, t.error_code
    from batch as b cross join lateral jobq_internal.list_attempts(b.job_id) as t where b.n = 1
    $$,
    $$ values (1, 'retrying' collate "C", 'w', 'LEASE_EXPIRED') $$,
    'the history shows it'
);

-- Bounds
select pg_temp.expire(6, 4, 5);
select results_eq(
    'select b.n from jobq_internal.recover(1) as r join batch as b using (job_id)',
    'values (6)', 'the oldest lease comes first'
);
select is((select count(*) from jobq_internal.recover(1)), 1::bigint, 'no more than max_jobs');
select is((select count(*) from jobq_internal.recover(100000)), 1::bigint, 'the rest next time');

-- A job that kills its workers
create temporary table ends (n integer, state text, expiries integer);
do $$
declare
    _job_id uuid := (select b.job_id from batch as b where b.n = 1);
begin
    for _n in 2 .. 6 loop
        exit when (jobq.get_job(_job_id)).state <> 'retrying';
        perform jobq.claim_job(_job_id, 'w');
        perform pg_temp.expire(1);
        insert into ends select _n, r.state from jobq_internal.recover() as r;
    end loop;
end
$$;
select results_eq(
    'select n, state from ends order by n',
    $$ values (2, 'retrying'), (3, 'retrying'), (4, 'retrying'), (5, 'dead') $$,
    'after five expiries a job is dead, whatever attempts it has left'
);
select results_eq(
    'select j.attempts, j.max_attempts from jobq.job as j join batch as b using (job_id)
    where b.n = 1',
    'values (5, 50)', 'and here it had many'
);
select jobq.configure(max_expiries => 1);
select jobq.enqueue('work') as once \gset
insert into batch values (7, :'once');
select from jobq.claim_job(:'once', 'w');
select pg_temp.expire(7);
select is(
    (select r.state from jobq_internal.recover() as r), 'dead', 'max_expiries is a setting'
);
select matches(
    (select e.explanation from jobq.explain(:'once') as e),
    'LEASE_EXPIRED .*; max_expiries leases have expired$', 'which explain() tells of'
);

select is(
    refusal('select jobq_internal.recover(' || a.arguments || ')'), a.refusal,
    format('recover(%s): %s', a.arguments, a.refusal)
)
from (
    values ('null', '22004 NULL_ARGUMENT'), ('0', '22023 INVALID_ARGUMENT'),
    ('100001', '22023 INVALID_ARGUMENT'), ('', 'none')
) as a (arguments, refusal);

select * from finish();
rollback;
