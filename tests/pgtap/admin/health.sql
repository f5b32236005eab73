begin;
select plan(23);

select hold_off_vacuum();
set local track_functions = 'all';

select ok(
    not (select h.is_ok from jobq.health() as h where h.subject = 'workers'),
    'a queue that nobody works is not well'
);
select lives_ok(
    $$ select jobq.heartbeat('w', '{}', '{}', '{default}') $$, 'a worker says that it lives'
);
select ok(
    (select h.is_ok and h.remedy is null from jobq.health() as h where h.subject = 'workers'),
    'with a live worker it is well, and needs no remedy'
);

select jobq.enqueue('k', queue => q) from unnest('{default,forgotten,paused}'::text[]) as q;
set local session_replication_role = replica;
update jobq_private.job set due_at = now() - interval '2 min';
set local session_replication_role = origin;
select jobq.pause_queue('paused');
select is(
    (select h.finding from jobq.health() as h where h.subject = 'queues'),
    'no live worker serves forgotten', 'a queue with due jobs and no live worker is named'
);
select jobq.delete_many(kind => 'k');
select ok(
    (select h.is_ok from jobq.health() as h where h.subject = 'queues'),
    'an empty one is well'
);

select jobq.enqueue('k', queue => 'many ' || n) from generate_series(1000, 1599) as n;
set local session_replication_role = replica;
update jobq_private.job as j
set due_at = now() - interval '2 min'
where j.queue = 'many 1599';
set local session_replication_role = origin;
select is(
    (select h.finding from jobq.health() as h where h.subject = 'queues'),
    'no live worker serves many 1599', 'of many queues the one with due jobs is found'
);
set local session_replication_role = replica;
update jobq_private.job as j
set due_at = now() - interval '2 min';
set local session_replication_role = origin;
select is(
    (select count(*) from jobq_private.unserved_queues()), 500::bigint,
    'of very many it looks at so many as it can name'
);
select matches(
    (select h.finding from jobq.health() as h where h.subject = 'queues'),
    ', many \d{4} and 455 more$', 'names are whole, and it says how many are not there'
);
select is(
    coalesce(pg_stat_get_xact_function_calls('jobq_private.first_due'::regproc), 0), 0::bigint,
    'queues without limits are not asked one by one'
);
select jobq.delete_many(kind => 'k');

select jobq.enqueue('k', queue => 'keyed', concurrency_key => 'a');
select ok(
    (select h.is_ok from jobq.health() as h where h.subject = 'queues'),
    'a job with a key is no finding before it has been due for a minute'
);
set local session_replication_role = replica;
update jobq_private.job as j set run_at = now() - interval '2 min';
set local session_replication_role = origin;
select is(
    (select h.finding from jobq.health() as h where h.subject = 'queues'),
    'no live worker serves keyed', 'then it is one'
);
select jobq.delete_many(kind => 'k');

select lives_ok(
    $$ select jobq.maintain() from generate_series(1, 2) $$, 'partitions are made, a day at a time'
);
select ok(
    (select h.is_ok from jobq.health() as h where h.subject = 'partitions'),
    'with a partition for tomorrow the archive is ready'
);

select jobq.enqueue('k');
select jobq.claim('{default}', 'w');
set local session_replication_role = replica;
update jobq_private.job set lease_expires_at = now() - interval '1 min';
set local session_replication_role = origin;
select is(
    (select h.finding from jobq.health() as h where not h.is_ok and h.subject = 'leases'),
    '1 leases expired more than 10 s ago',
    'a lease that nobody takes back is named'
);

set local synchronous_commit = off;
select ok(
    (select h.remedy is not null from jobq.health() as h where h.subject = 'synchronous_commit'),
    'commits that do not wait for the disk are named, with the remedy'
);

-- What is set for a role or the database: other sessions do not show it
create function pg_temp.found(out finding text, out remedy text)
language sql
as $$
select h.finding, h.remedy from jobq.health() as h
where h.subject = 'role_settings' and not h.is_ok
$$;
select is_empty(
    'select from pg_temp.found() where finding is not null', 'at first no role is named'
);
create role health_producer in role jobq_producer;
create role health_stranger;
alter role health_stranger set synchronous_commit = off;
alter role health_producer set synchronous_commit = local;
alter role jobq_reader set synchronous_commit = off;
select is_empty(
    'select from pg_temp.found() where finding is not null',
    'roles that may change no job, and commits that wait for the disk, are left alone'
);
alter role health_producer set synchronous_commit = 'No';
select results_eq(
    'select * from pg_temp.found()',
    $$ values (
        'synchronous_commit=No for role health_producer',
        'alter role health_producer reset synchronous_commit'
    ) $$,
    'a producer whose commits do not wait for the disk is named, with the statement that helps'
);
alter role health_producer reset all;
select format('alter database %I set synchronous_commit = off', current_database()),
    format('alter role health_producer in database %I set session_replication_role = replica',
        current_database()) \gexec
select is(
    (select remedy from pg_temp.found()),
    format('alter role health_producer in database %1$I reset session_replication_role; '
        'alter database %1$I reset synchronous_commit', current_database()),
    'so are the database, and a role in this database whose triggers do not fire'
);
select format('alter database %I reset all', current_database()),
    format('alter role health_producer in database %I reset all', current_database()) \gexec
alter role all set synchronous_commit = off;
select is(
    (select remedy from pg_temp.found()), 'alter role all reset synchronous_commit',
    'what is set for all roles is named'
);
alter role all reset synchronous_commit;
alter role health_producer in database template1 set synchronous_commit = off;
select is_empty(
    'select from pg_temp.found() where finding is not null',
    'what is set for another database is none of ours'
);
alter role jobq_worker set synchronous_commit = off;
set local role jobq_reader;
select is(
    (select h.remedy from jobq.health() as h where h.subject = 'role_settings'),
    'alter role jobq_worker reset synchronous_commit', 'whoever may ask for health sees it'
);
reset role;

select jobq_private.record_release('a release');
set local datestyle = 'German';
set local intervalstyle = 'iso_8601';
set local timezone = 'Asia/Kolkata';
set local standard_conforming_strings = off;
set local escape_string_warning = off;
set local quote_all_identifiers = on;
select is_empty(
    'select object from jobq_private.schema_difference',
    'the schema is as it was deployed, whatever the session sets'
);

select * from finish();
rollback;
