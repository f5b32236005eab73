-- What jobq.await_events() promises to one session; who is told is in test_events.py.
begin;
select plan(3);

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

select jobq.await_events();
select is(pg_temp.held(), 'awaiting:0 awaiting_events:0', 'it is known that somebody sleeps until a job ends');
select jobq.await_events();
select is(pg_temp.held(), 'awaiting:0 awaiting_events:0', 'saying so again adds nothing');
select jobq.end_wait();
select is(pg_temp.held(), null, 'end_wait() ends that');

select * from finish();
rollback;
