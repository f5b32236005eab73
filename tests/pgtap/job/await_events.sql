-- What jobq.await_events() promises to one session; who is told is in test_events.py.
begin;
select plan(3);

create function pg_temp.held()
returns text
language sql
as $$
select string_agg(l.objid::text, ' ' order by l.objid) from pg_catalog.pg_locks as l
where l.locktype = 'advisory' and l.pid = pg_backend_pid() and l.mode = 'ShareLock'
and l.classid = 1785684596
$$;

select jobq.await_events();
select is(pg_temp.held(), '1024 1025', 'it is known that somebody sleeps until a job ends');
select jobq.await_events();
select is(pg_temp.held(), '1024 1025', 'saying so again adds nothing');
select jobq.end_wait();
select is(pg_temp.held(), null, 'end_wait() ends that');

select * from finish();
rollback;
