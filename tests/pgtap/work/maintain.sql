-- What jobq.maintain() promises; partitions.sql has the partitions, and
-- Needs more than the core.
-- tests/python/test_races.py several callers at once.
begin;
select plan(16);

select hold_off_vacuum();
update jobq_private.history_mark set rolled_to = now();

select jobq.enqueue('work', idempotency_key => 'live') as live,
    jobq.enqueue('work') as lost,
    jobq.enqueue('work', idempotency_key => 'old') as ended,
    jobq.enqueue('work', idempotency_key => 'young') as young \gset
select from jobq.claim_job(:'lost', 'w');
select jobq.cancel(:'ended'), jobq.cancel(:'young');
set local session_replication_role = replica;
update jobq_private.job set lease_expires_at = now() - interval '1 s'
where job_id = :'lost';
set local session_replication_role = origin;
update jobq_private.idempotency_key set created_at = now() - interval '30 days 1 s'
where idempotency_key <> 'young';
update jobq_private.idempotency_key set created_at = now() - interval '29 days 23 h'
where idempotency_key = 'young';
insert into jobq_private.worker (worker, queues, seen_at)
values ('gone', '{}', now() - interval '601 s'),
('quiet', '{}', now() - interval '599 s');

create temporary table first_call as select * from jobq.maintain();
select results_eq(
    'select task, affected from first_call order by task',
    $$
    values ('expired', 0::bigint), ('healed', 0), ('made_partitions', 3), ('opened_keys', 0),
    ('pruned_jobs', 0), ('pruned_keys', 1), ('pruned_limits', 0), ('pruned_workflows', 0), ('recovered', 1::bigint), ('resolved', 0), ('rolled_up', 0), ('ticked', 0::bigint)
    $$,
    'it tells what it has done'
);
select results_eq(
    'select task from first_call where has_more', $$ values ('made_partitions') $$,
    'and what is left to do at once'
);
do $$
begin
    while (select bool_or(m.has_more) from jobq.maintain() as m) loop
    end loop;
end
$$;
select is(
    (jobq.get_job(:'lost')).state::text, 'retrying', 'expired leases are taken back'
);
select results_eq(
    'select idempotency_key from jobq_private.idempotency_key order by 1',
    $$ values ('live'), ('young') $$,
    'keys past their retention are forgotten, but for those of live jobs'
);
select is(
    jobq.enqueue('work', idempotency_key => 'live'), :'live'::uuid,
    'the key of a live job still stands for it'
);
select isnt(
    jobq.enqueue('work', idempotency_key => 'old'), :'ended'::uuid,
    'a forgotten key makes a new job'
);
select results_eq(
    'select worker from jobq_private.worker', $$ values ('quiet') $$,
    'workers that were not seen for ten minutes are forgotten'
);
select results_eq(
    'select task, affected from jobq.maintain() order by task',
    $$
    values ('dropped_partitions', 0::bigint), ('expired', 0), ('healed', 0), ('made_partitions', 0), ('opened_keys', 0),
    ('pruned_jobs', 0), ('pruned_keys', 0), ('pruned_limits', 0), ('pruned_workflows', 0), ('recovered', 0::bigint), ('resolved', 0), ('rolled_up', 0), ('ticked', 0::bigint)
    $$,
    'when nothing is to be done it does nothing'
);
select jobq.configure(key_retention => '2 h');
update jobq_private.idempotency_key set created_at = now() - interval '121 min'
where idempotency_key = 'young';
select is(
    (select m.affected from jobq.maintain() as m where m.task = 'pruned_keys'),
    1::bigint,
    'key_retention is a setting'
);
insert into jobq_private.idempotency_key
select 'bulk', n::text, gen_random_uuid(), now() - interval '1 day'
from generate_series(1, 2500) as n;
select results_eq(
    $$ select m.affected, m.has_more from jobq.maintain() as m where m.task = 'pruned_keys' $$,
    'values (2500::bigint, false)', 'a task is repeated while it comes back full'
);

insert into jobq_private.throttle
select 'bulk', n::text, gen_random_uuid(), now() - interval '1 s' from generate_series(1, 1500) as n;
select is(
    (select m.affected from jobq.maintain() as m where m.task = 'pruned_keys'), 1500::bigint,
    'so is one with many ended throttles'
);

-- Each task by itself
create function pg_temp.refuse() returns trigger language plpgsql as $$
begin
    raise exception 'the disk of schedules is full';
end
$$;
create trigger refuse before delete on jobq_private.idempotency_key
for each statement execute function pg_temp.refuse();
select jobq.enqueue('work') as lost_again \gset
select from jobq.claim_job(:'lost_again', 'w');
set local session_replication_role = replica;
update jobq_private.job set lease_expires_at = now() - interval '1 s'
where job_id = :'lost_again';
set local session_replication_role = origin;
create temporary table failing as select * from jobq.maintain();
select results_eq(
    'select task, affected from failing order by task',
    $$
    values ('dropped_partitions', 0::bigint), ('expired', 0), ('healed', 0), ('made_partitions', 0), ('opened_keys', 0),
    ('pruned_jobs', 0), ('pruned_keys', null), ('pruned_limits', 0), ('pruned_workflows', 0), ('recovered', 1::bigint), ('resolved', 0), ('rolled_up', 0), ('ticked', 0::bigint)
    $$,
    'a task that fails leaves the others alone'
);
select from jobq.maintain();
select matches(
    (select h.finding from jobq.health() as h where h.subject = 'maintenance' and not h.is_ok),
    'pruned_keys failed 2 times, .*P0001 the disk of schedules is full',
    'health() says which and why'
);
drop trigger refuse on jobq_private.idempotency_key;
select from jobq.maintain();
select ok(
    (select h.is_ok from jobq.health() as h where h.subject = 'maintenance'),
    'until it has done its work again'
);

-- A publication of all tables asks for a key where something is deleted or updated
select is_empty(
    $$
    select c.oid::regclass from pg_catalog.pg_class as c
    where c.relnamespace = 'jobq_private'::regnamespace and c.relkind in ('r', 'p')
    and not exists (
        select from pg_catalog.pg_index as i where i.indrelid = c.oid and i.indisprimary
    )
    and c.relreplident <> 'f'
    $$,
    'every table has a primary key, or else its whole rows are its identity'
);
set local client_min_messages = error;
create publication everything for all tables;
select jobq.log(:'live', 0, 'INFO', 'before');
update jobq_private.job_log set logged_at = now() - interval '2 days';
select results_eq(
    'select task, affected from jobq.maintain() order by task',
    $$
    values ('expired', 0::bigint), ('healed', 0), ('made_partitions', 1), ('opened_keys', 0),
    ('pruned_jobs', 0), ('pruned_keys', 0), ('pruned_limits', 0), ('pruned_workflows', 0), ('recovered', 0::bigint), ('resolved', 0), ('rolled_up', 0), ('ticked', 0::bigint)
    $$,
    'maintenance goes on under a publication for all tables'
);

select * from finish();
rollback;
