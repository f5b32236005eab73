-- How functions that work with their owner's rights are hijacked: each attack first
-- succeeds against a weak copy, and then fails against jobq's own functions. SQL in
-- arguments is in tests/python/test_fuzz.py, other tenants in test_tenants.py.
begin;
select plan(19);

create role intruder;
grant jobq_producer, jobq_worker, jobq_operator to intruder;
create role outsider;
create schema evil authorization intruder;
create schema weak authorization jobq_owner;

-- The weak copies, as they would stand without the rules of this house.
set local role jobq_owner;
grant usage on schema weak to public;
create table weak.job (kind text, tenant text);
create table weak.audit (action text, actor text default current_setting('role'));
create function weak.enqueue_unpinned(kind text) returns void
language plpgsql security definer
as 'begin insert into weak.job (kind) values (lower(kind)); end';
create function weak.enqueue_without_temp(kind text) returns void
language plpgsql security definer set search_path = weak
as 'begin insert into job (kind) values (kind); end';
create function weak.find_by_setting() returns setof weak.job
language sql security definer set search_path = pg_catalog, pg_temp
as 'select * from weak.job where tenant = current_setting(''weak.tenant'')';
create function weak.note(action text) returns void
language sql security definer set search_path = pg_catalog, pg_temp
as 'insert into weak.audit (action) values (action)';
insert into weak.job values ('theirs', 'victim');
grant execute on all functions in schema weak to public;
reset role;
create function weak.forgotten() returns void language sql as 'select';

-- The intruder's tools: functions, an operator and tables of the names that bodies use.
set session authorization intruder;
create table evil.taken (by_whom text);
grant usage on schema evil to public;
grant all on evil.taken to public;
create function evil.take() returns void
language sql
as 'insert into evil.taken values (current_user)';
create function evil.lower(text) returns text
language sql
as 'select evil.take(); select pg_catalog.lower($1)';
create function evil.length(text) returns integer
language sql
as 'select evil.take(); select 1';
create function evil.now() returns timestamptz
language sql
as 'select evil.take(); select timestamptz ''1999-01-01''';
create function evil.clock_timestamp() returns timestamptz
language sql
as 'select evil.take(); select timestamptz ''1999-01-01''';
create function evil.jsonb_typeof(jsonb) returns text
language sql
as 'select evil.take(); select ''object''';
create function evil.cardinality(anyarray) returns integer
language sql
as 'select evil.take(); select 1';
create function evil.pg_has_role(name, oid, text) returns boolean
language sql
as 'select evil.take(); select true';
create function evil.same(text, text) returns boolean
language sql
as 'select evil.take(); select true';
create operator evil.= (leftarg = text, rightarg = text, function = evil.same);
create temporary table job (like jobq.job);
create temporary table setting (max_payload_bytes integer, max_payload_depth integer);
create temporary table queue (queue text, paused_at timestamptz);
create temporary table held_queue (any_of text[], enqueued text[], worked text[]);
insert into held_queue values ('{*}', '{*}', '{*}');
grant all on job, setting, queue, held_queue to public;

-- A function in the caller's search path
set local search_path = evil, pg_catalog;
select weak.enqueue_unpinned('X');
set local search_path = tap;
select results_eq(
    'select by_whom from evil.taken', $$ values ('jobq_owner') $$,
    'weak: without a pinned path the caller''s lower() runs as the owner'
);
truncate evil.taken;
set local search_path = evil, pg_catalog;
select jobq.enqueue('X', queue => 'hijack') as mine \gset
select from jobq.enqueue_many('[{"kind": "y", "queue": "hijack", "dedup_key": "k"}]');
select from jobq.claim('{hijack}', 'w');
select jobq.complete(:'mine', 1);
select from jobq.heartbeat('w', '{}', '{}');
select jobq.pause_queue('hijack', 'x');
select from jobq.explain(:'mine');
select from jobq.list_jobs(queue => 'hijack');
set local search_path = tap;
select is_empty('table evil.taken', 'jobq''s functions run none of the caller''s');
reset session authorization;
set local search_path = tap;
select results_eq(
    $$ select j.kind, j.state = 'succeeded', j.created_at = now() from jobq.job as j
    where j.queue = 'hijack' order by j.kind $$,
    $$ values ('X', true, true), ('y', false, true) $$,
    'and do what they always do'
);

-- A temporary table that takes the place of a real one
set session authorization intruder;
alter table pg_temp.job rename to real_shape;
create temporary table job (kind text);
grant all on pg_temp.job to public;
select weak.enqueue_without_temp('caught');
select results_eq(
    'select kind from pg_temp.job', $$ values ('caught') $$,
    'weak: a path without pg_temp at its end lets a temporary table catch the row'
);
truncate pg_temp.job;
set local search_path = pg_temp, pg_catalog;
select jobq.enqueue('safe', queue => 'captured') as safe \gset
set local search_path = tap;
select is_empty('table pg_temp.job', 'jobq''s rows go where they belong');
select lives_ok(
    format('select from jobq.get_job(%L)', :'safe'), 'and are found there'
);
reset session authorization;

-- A setting, or a role, that stands for who one is
set session authorization intruder;
set local search_path = tap;
select set_config('weak.tenant', 'victim', true) \g /dev/null
select results_eq(
    'select kind from weak.find_by_setting()', $$ values ('theirs') $$,
    'weak: a tenant that is a setting is whom the caller says'
);
set local role jobq_operator;
select weak.note('deed');
reset role;
reset session authorization;
select results_eq(
    'select actor from weak.audit', $$ values ('jobq_operator') $$,
    'weak: an audit of roles does not tell who has logged in'
);
select jobq.enqueue('theirs', queue => 'victim') as theirs \gset
select jobq.grant_queue('intruder', 'own', 'work');
select jobq.grant_queue('jobq_operator', 'operated', 'work');
select jobq.enforce_queue_grants();
set session authorization intruder;
set local search_path = evil, pg_temp, pg_catalog;
select pg_catalog.count(*) as seen from jobq.job \gset
set local search_path = tap;
select is(:seen, 0, 'jobq goes by the log-in, whatever is set or stands in the way');
set local role jobq_operator;
select is_empty(
    'select from jobq.job as j where j.queue = ''victim''', 'whatever role it plays'
);
select jobq.pause_queue('own', 'as operator');
set local role none;
set local row_security = off;
select throws_ok(
    'select from jobq.job', '42501', null, 'row security cannot be set aside'
);
set local row_security = on;
select is_empty('table evil.taken', 'and no policy runs the caller''s functions');
select throws_ok('set role jobq_owner', '42501', null, 'nobody becomes the owner');
reset session authorization;
set local search_path = tap;
select results_eq(
    $$ select a.actor from jobq.audit as a where a.reason = 'as operator' $$,
    $$ values ('intruder') $$, 'the audit tells who has logged in'
);
select jobq.enforce_queue_grants(false);

-- What everybody may do unless somebody forbids it
select ok(
    has_function_privilege('outsider', 'weak.forgotten()', 'execute'),
    'weak: a function that nobody has thought of is everybody''s'
);
select is_empty(
    $$
    select p.oid::regprocedure from pg_catalog.pg_proc as p
    where p.pronamespace in (
        'jobq'::regnamespace, 'jobq_http'::regnamespace, 'jobq_internal'::regnamespace,
        'jobq_private'::regnamespace
    )
    and has_function_privilege('outsider', p.oid, 'execute')
    $$,
    'of jobq''s functions an outsider may call none'
);
set local role jobq_owner;
create function jobq.forgotten() returns void language sql as 'select';
reset role;
select ok(
    not has_function_privilege('outsider', 'jobq.forgotten()', 'execute'),
    'nor of those that are added without a thought'
);
set session authorization outsider;
select throws_ok('select from jobq.job', '42501', null, 'nor read a view');
select throws_ok('select jobq.enqueue(''x'')', '42501', null, 'nor enqueue');
reset session authorization;

select * from finish();
rollback;
