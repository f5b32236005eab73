-- What jobq.end_wait() promises.
begin;
select plan(4);

create function pg_temp.held()
returns bigint
language sql
as $$
select count(*) from pg_catalog.pg_locks as l
where l.locktype = 'advisory' and l.pid = pg_backend_pid() and l.mode = 'ShareLock'
$$;
select jobq.begin_wait('{a,b}');
select is(pg_temp.held(), 3::bigint, 'a worker that waits is known to wait');
select jobq.end_wait();
select is(pg_temp.held(), 0::bigint, 'one that is awake is not');
select lives_ok('select jobq.end_wait()', 'a worker may say so at any time');
select pg_advisory_lock_shared(7, 7);
select jobq.end_wait();
select is(
    pg_temp.held(), 0::bigint,
    'its session keeps no advisory lock, and so must do nothing else'
);

select * from finish();
rollback;
