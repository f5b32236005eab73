-- What jobq.heartbeat() promises.
-- Needs more than the core.
begin;
select plan(25);

create temporary table batch (n integer, job_id uuid);
insert into batch select n, jobq.enqueue('work', timeout => '60 s')
from generate_series(1, 6) as n;
select from jobq.claim('{default}', 'w', 5);
create function pg_temp.ids(variadic n integer[])
returns uuid[]
language sql
as $$
select array_agg(b.job_id order by o.ordinal)
from unnest(ids.n) with ordinality as o (n, ordinal)
join batch as b on b.n = o.n
$$;
-- Let an attempt have begun this long ago, its lease as it was then.
create function pg_temp.age(n integer, age interval)
returns void
language plpgsql
as $$
begin
    set local session_replication_role = replica;
    update jobq_private.job as j
    set claimed_at = clock_timestamp() - age.age,
        lease_expires_at = clock_timestamp() - age.age + j.lease
    from batch as b
    where b.job_id = j.job_id and b.n = age.n;
    set local session_replication_role = origin;
end
$$;
select jobq.cancel(b.job_id) from batch as b where b.n = 2;
select pg_temp.age(1, '10 s'), pg_temp.age(2, '10 s'), pg_temp.age(4, '75 s');

select results_eq(
    $$
    select b.n, h.attempt, h.outcome
    from jobq.heartbeat('w', pg_temp.ids(3, 1, 2, 3, 6), '{2,1,1,1,0}')
        with ordinality as h (job_id, attempt, outcome, n)
    join batch as b using (job_id)
    order by h.n
    $$,
    $$
    values (3, 2, 'lost'), (1, 1, 'extended'), (2, 1, 'cancel_requested'),
    (3, 1, 'extended'),
    (6, 0, 'lost')
    $$,
    'each attempt is told, in the order given, whether it holds its job and is to go on'
);
select results_eq(
    $$
    select b.n, j.heartbeat_at between now() and clock_timestamp(),
        j.lease_expires_at = j.heartbeat_at + interval '30 s'
    from batch as b join jobq_private.job as j using (job_id)
    where b.n in (1, 2)
    order by b.n
    $$,
    'values (1, true, true), (2, true, true)',
    'the leases run from now, also of a job that is to be cancelled'
);
select is(
    (select j.heartbeat_at from jobq_private.job as j join batch as b using (job_id)
    where b.n = 5),
    null, 'a job that is not named is left alone'
);
select results_eq(
    $$ select h.outcome from jobq.heartbeat('w', pg_temp.ids(4), '{1}') as h $$,
    $$ values ('extended') $$,
    'an expired lease that nobody has taken back is extended'
);
select ok(
    j.lease_expires_at = j.claimed_at + j.timeout + j.lease,
    'but never past the timeout and one lease'
)
from jobq_private.job as j join batch as b using (job_id) where b.n = 4;
select pg_temp.age(4, '200 s');
select from jobq.heartbeat('w', pg_temp.ids(4), '{1}');
select ok(
    j.lease_expires_at < clock_timestamp(),
    'so that a job that hangs is taken back, whatever its worker says'
)
from jobq_private.job as j join batch as b using (job_id) where b.n = 4;
update jobq_private.job as j set lease = '1 s'
from batch as b where b.job_id = j.job_id and b.n = 5;
create temporary table lease_before as
select j.job_id, j.lease_expires_at from jobq_private.job as j;
select from jobq.heartbeat('w', pg_temp.ids(5), '{1}');
select is(
    j.lease_expires_at, l.lease_expires_at, 'a heartbeat never shortens a lease'
)
from jobq_private.job as j
join lease_before as l using (job_id)
join batch as b using (job_id)
where b.n = 5;

-- Workers
select results_eq(
    'select worker, queues, is_live, jobs from jobq.worker',
    $$ values ('w', '{}'::text[], true, 5::bigint) $$,
    'a heartbeat says that the worker lives'
);
select is_empty(
    'select * from jobq.heartbeat(''idle'', ''{}'', ''{}'', ''{a,b}'')',
    'so does one without jobs'
);
select from jobq.heartbeat('idle', '{}', '{}');
select is(
    (select w.queues from jobq.worker as w where w.worker = 'idle'), '{a,b}',
    'the queues of a worker stay until it names others'
);
select from jobq.heartbeat('idle', '{}', '{}', release => 'shop-7');
select from jobq.heartbeat('idle', '{}', '{}');
select is(
    (select w.release from jobq.worker as w where w.worker = 'idle'), 'shop-7',
    'so does the release of what it runs'
);
select from jobq.heartbeat('idle', '{}', '{}', release => repeat('8', 200));
select is(
    (select w.release from jobq.worker as w where w.worker = 'idle'), repeat('8', 200),
    'and a later release takes its place'
);
select from jobq.heartbeat('idle', '{}', '{}', stuck => 3);
select from jobq.heartbeat('idle', '{}', '{}');
select is(
    (select w.stuck from jobq.worker as w where w.worker = 'idle'), 3,
    'so do the slots that it has lost to handlers that hang'
);
select results_eq(
    $$ select is_ok, finding from jobq.health() where subject = 'slots' $$,
    $$ values (false, 'handlers that hang occupy 3 slots of worker idle') $$,
    'of which health tells'
);
update jobq_private.worker set seen_at = now() - interval '61 s' where worker = 'idle';
select is(
    (select w.is_live from jobq.worker as w where w.worker = 'idle'), false,
    'a worker that was not seen for a minute is not live'
);
select is(
    refusal('select jobq.heartbeat(' || a.arguments || ')'), a.refusal,
    format('heartbeat(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('null, ''{}'', ''{}''', '22004 NULL_ARGUMENT'),
    ('''w'', null, ''{}''', '22004 NULL_ARGUMENT'),
    ('''w'', ''{}'', null', '22004 NULL_ARGUMENT'),
    ('''w'', ''{}'', ''{1}''', '22023 INVALID_ARGUMENT'),
    ('''w'', ''{null}'', ''{1}''', 'none'),
    (''''', ''{}'', ''{}''', '22023 INVALID_ARGUMENT'),
    ('repeat(''w'', 257), ''{}'', ''{}''', '22023 INVALID_ARGUMENT'),
    ('''w'', ''{}'', ''{}'', release => ''''', '22023 INVALID_ARGUMENT'),
    ('''w'', ''{}'', ''{}'', stuck => -1', '22023 INVALID_ARGUMENT'),
    ('''w'', ''{}'', ''{}'', release => repeat(''r'', 201)', '22023 INVALID_ARGUMENT')
) as a (arguments, refusal);

select * from finish();
rollback;
