-- Who may do what, read from the catalog: a new function, table or view cannot escape.
begin;
select plan(43);

create temporary table routine as
select
    p.oid, p.oid::regprocedure::text as function,
    p.proname::text collate "default" as name,
    n.nspname::text collate "default" as schema,
    l.lanname as language, p.prosecdef as is_definer, p.provolatile as volatility,
    p.proparallel as parallel, p.proconfig as config,
    p.proowner::regrole::text as owner,
    p.prosrc as body,
    coalesce(p.proacl, acldefault('f', p.proowner)) as acl
from pg_catalog.pg_proc as p
join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
join pg_catalog.pg_language as l on l.oid = p.prolang
where n.nspname in ('jobq', 'jobq_http', 'jobq_internal', 'jobq_private');

-- The matrix: p producer, w worker, o operator, r reader (o has all that r has).
create temporary table may_execute (function text, roles text);
insert into may_execute values
('wait_for', 'w'),
('call_many', 'w'),
('read_steps', 'w'),
('wait_any', 'w'),
('append', 'w'),
('append_many', 'w'),
('read_stream', 'p w o r'),
('read_streams', 'p w o r'),
('list_streams', 'p w o r'),
('await_stream', 'p w o r'),
('send_message', 'p w o'),
('start_children', 'w'),
('call_children', 'w'),
('fork', 'o'),
('signal', 'p w o'),
('ask', 'w'),
('answer', 'p o'),
('list_waits', 'o r'),
('save_steps', 'w'),
('save_step', 'w'),
('list_steps', 'w o r'),
('emit', 'p w o'),
('show_jobs', 'o r'),
('show_queue', 'o r'),
('show_queues', 'o r'),
('show_totals', 'o r'),
('show_login', 'p w o r'),
('show_history', 'o r'),
('show_dead_jobs', 'o r'),
('show_workers', 'o r'),
('show_workflows', 'o r'),
('page_audit', 'o'),
('show_pulse', 'o r'),
('open_batch', 'p'),
('enqueue_graph', 'p w'),
('cancel_tree', 'p o'),
('redrive_tree', 'o'),
('rerun', 'o'),
('show_graph', 'p w o r'),
('seal_batch', 'p w o'),
('cancel_batch', 'p o'),
('batch_status', 'p w o r'),
('list_inputs', 'p w o r'),
('act_for', 'p w o r'),
('authenticate', 'o r'),
('work', 'w'),
('run_calls', 'w'),
('begin_wait', 'w'),
('cancel', 'p o'),
('cancel_execution', 'p o'),
('cancel_many', 'o'),
('change_many', 'o'),
('claim', 'w'),
('claim_calls', 'w'),
('claim_job', 'w'),
('complete', 'w'),
('complete_many', 'w'),
('configure', 'o'),
('confirm_cancel', 'w'),
('create_api_key', 'o'),
('create_schedule', 'p w o'),
('delete_definition', 'o'),
('delete_kind', 'o'),
('delete_many', 'o'),
('delete_queue', 'o'),
('due_in', 'w o r'),
('end_wait', 'p w o r'),
('endpoint_stats', 'o r'),
('enforce_queue_grants', null),
('advance_clock', null),
('enqueue', 'p'),
('enqueue_many', 'p'),
('exchange', 'w'),
('explain', 'p o r'),
('fail', 'w'),
('fail_many', 'w'),
('find_job', 'p w o r'),
('get_call', 'w'),
('get_delivery', 'w o'),
('get_job', 'p w o r'),
('get_schedule', 'p w o r'),
('grant_queue', null),
('health', 'o r'),
('heartbeat', 'w'),
('list_api_keys', 'o'),
('list_attempts', 'w o r'),
('list_budgets', 'o r'),
('list_ciphertexts', 'o'),
('list_jobs', 'o r'),
('listen_events', 'o r'),
('await_events', 'o r'),
('list_limits', 'o r'),
('list_kinds', 'o r'),
('list_undeclared_kinds', 'p w o'),
('list_queues', 'o r'),
('list_workers', 'o r'),
('list_logs', 'w o r'),
('list_payload_schemas', 'p o'),
('list_queue_grants', 'p w o r'),
('list_schedule_versions', 'w o r'),
('list_schedules', 'w o r'),
('list_undeliverable', 'w o'),
('list_versions', 'o r'),
('log', 'w'),
('maintain', 'w o'),
('maintain_in', 'w o r'),
('metrics', 'o r'),
('next_tick', 'p w o r'),
('page_attempts', 'w o r'),
('page_definitions', 'o r'),
('page_executions', 'p o r'),
('page_jobs', 'o r'),
('page_logs', 'w o r'),
('page_schedule_versions', 'p o r'),
('page_schedules', 'o r'),
('pause_endpoint', 'o'),
('pause_queue', 'o'),
('subscribe', 'w o'),
('unsubscribe', 'w o'),
('publish', 'p'),
('list_subscriptions', 'o r'),
('pause_kind', 'o'),
('resume_kind', 'o'),
('pause_schedule', 'o'),
('preview_cron', 'p w o r'),
('preview_schedule', 'p w o r'),
('put_budget', 'o'),
('put_config', 'o'),
('put_endpoint', 'o'),
('put_kind', 'w o'),
('put_limit', 'o'),
('put_shard', null),
('put_epoch', null),
('put_successor', null),
('send_jobs', null),
('receive_jobs', null),
('confirm_jobs', null),
('list_leftovers', null),
('list_moved', 'p w o r'),
('list_shards', 'p w o r'),
('list_declarations', null),
('list_router_statements', null),
('list_epochs', 'p w o r'),
('shard_of', 'p w o r'),
('choose_shard', 'p w o r'),
('hold_key', 'o'),
('rate_limited', 'w'),
('release_key', 'o'),
('put_payload_spec', 'o'),
('put_queue', 'o'),
('put_secret', 'o'),
('queue_stats', 'o r'),
('ready', 'p w o r'),
('recover', 'w o'),
('redrive', 'o'),
('redrive_many', 'o'),
('release', 'w'),
('release_many', 'w'),
('resume_endpoint', 'o'),
('replica_lag', 'o r'),
('resume_queue', 'o'),
('resume_schedule', 'o'),
('retire_schedule', 'p o'),
('run_schedule', 'o'),
('backfill_schedule', 'o'),
('retire_worker', 'w'),
('revise_job', 'p o'),
('revoke_api_key', 'o'),
('revoke_queue', null),
('rotate_secret', 'o'),
('schedule_status', 'p w o r'),
('set_progress', 'w'),
('spend', 'w'),
('settings', 'p w o r'),
('version', 'p w o r'),
('show_definition', 'o r'),
('show_execution', 'p w o r'),
('show_job', 'p w o r'),
('show_schedule', 'p w o r'),
('stop_job', 'p o'),
('preview_slots', 'p w o r'),
('submit_job', 'p'),
('submit_jobs', 'p'),
('submit_schedule', 'p o'),
('test_endpoint', 'o'),
('tick', 'w o'),
('update_schedule', 'p o'),
('wait', 'p w o r');

create temporary table may_use (view text, privileges text);
insert into may_use values
('attempt', 'o:SELECT r:SELECT'),
('audit', 'o:SELECT'),
('error', 'p:SELECT w:SELECT o:SELECT r:SELECT'),
('job', 'p:SELECT p:INSERT o:SELECT o:UPDATE r:SELECT'),
('kind', 'o:SELECT r:SELECT'),
('question', 'o:SELECT r:SELECT'),
('queue', 'o:SELECT r:SELECT'),
('queue_grant', 'p:SELECT w:SELECT o:SELECT r:SELECT'),
('schedule', 'o:SELECT r:SELECT'),
('worker', 'o:SELECT r:SELECT');

create temporary table role (letter text, role text, ordinal integer);
insert into role values
('p', 'jobq_producer', 1), ('w', 'jobq_worker', 2), ('o', 'jobq_operator', 3),
('r', 'jobq_reader', 4);

-- Functions
select cmp_ok(
    (select count(*) from routine), '>', 60::bigint, 'the catalog has the functions'
);
select results_eq(
    $$
    select f.name, (
        select string_agg(r.letter, ' ' order by r.ordinal)
        from role as r
        where has_function_privilege(r.role, f.oid, 'execute')
    )
    from routine as f
    where f.schema <> 'jobq_private'
    order by f.name
    $$,
    'select m.function, m.roles from may_execute as m order by m.function',
    'each role may execute just the functions of the matrix'
);
select is_empty(
    $$ select name from routine where schema <> 'jobq_private'
    group by name having count(*) > 1 $$,
    'no public function is overloaded, so that named arguments are never ambiguous'
);
select is_empty(
    $$
    select f.function, a.grantee::regrole, a.is_grantable
    from routine as f
    cross join lateral aclexplode(f.acl) as a
    where a.grantee <> 'jobq_owner'::regrole
    and (f.schema = 'jobq_private' or a.grantee = 0 or a.is_grantable)
    $$,
    'PUBLIC may execute nothing, nobody a private function, and nobody may grant'
);
select is_empty(
    $$ select function from routine where owner <> 'jobq_owner' $$,
    'jobq_owner owns every function'
);
select is_empty(
    $$
    select function from routine
    where schema <> 'jobq_private'
    and coalesce(length(obj_description(oid, 'pg_proc')), 0) < 10
    $$,
    'every public function has a comment'
);
select is_empty(
    $$
    select function, obj_description(oid, 'pg_proc') from routine
    where obj_description(oid, 'pg_proc') !~ '^[A-Z].*[^.]\.$'
    or obj_description(oid, 'pg_proc') ~ '\n'
    $$,
    'every comment is one line, and a sentence'
);
create temporary table unpinned as
select r.oid, r.function, r.schema, r.name, r.language, r.body
from routine as r
where not coalesce('search_path=pg_catalog, pg_temp' = any (r.config), false);
select is_empty(
    $$
    select u.function
    from unpinned as u
    join routine as r using (oid)
    where u.schema <> 'jobq_private'
    or r.is_definer
    or exists (select from pg_catalog.pg_trigger as t where t.tgfoid = u.oid)
    $$,
    'every public function, SECURITY DEFINER or not, and every trigger function pins its search path'
);
select is_empty(
    $$
    select u.function, m.found[1]
    from unpinned as u
    cross join lateral regexp_matches(u.body, '[^.a-z0-9_]([a-z0-9_]+)\(', 'g') as m (found)
    where exists (
        select from pg_catalog.pg_depend as d
        where d.refclassid = 'pg_proc'::regclass and d.refobjid = u.oid
        and d.classid <> 'pg_proc'::regclass
    )
    and (
        m.found[1] not in ('array', 'coalesce', 'extract', 'greatest', 'least', 'nullif')
        or u.language <> 'sql'
    )
    $$,
    'a function that a view, policy or column calls pins it, or names the schema of all it calls'
);
select is_empty(
    $$
    select function from routine
    where schema = 'jobq' and not is_definer and name not in ('work', 'run_calls')
    $$,
    'every public function works with its owner''s rights, but those that run others'' code'
);
select is_empty(
    $$
    select f.function
    from routine as f
    join pg_catalog.pg_trigger as t on t.tgfoid = f.oid
    where not f.is_definer and f.body ~ 'jobq_private\.'
    $$,
    'so does every trigger function that touches a table'
);
select results_eq(
    $$
    select f.function
    from routine as f
    where f.schema = 'jobq_private' and f.is_definer
    and f.oid not in (select t.tgfoid from pg_catalog.pg_trigger as t)
    $$,
    $$ select null::text where false $$,
    'no other private function needs them'
);
select is_empty(
    $$ select function, language from routine
    where language not in ('sql', 'plpgsql') $$,
    'no function is written in an untrusted or missing language'
);

-- Volatility against the source
select is_empty(
    $$
    select function from routine
    where volatility <> 'v'
    and body ~* ('\m(insert\s+into|update\s+jobq|delete\s+from|truncate|for\s+update'
        || '|for\s+share|nextval|random\(\)|gen_random_uuid|uuidv7|pg_notify'
        || '|pg_(try_)?advisory)')
    $$,
    'whatever writes, locks, notifies or draws lots is volatile'
);
select is_empty(
    $$
    select f.function, g.function
    from routine as f
    cross join lateral regexp_matches(f.body, '\m(\w+)\.(\w+)\(', 'g') as c (call)
    join routine as g
        on g.schema = c.call[1] and g.name = c.call[2]
        and g.volatility = 'v'
    where f.volatility <> 'v'
    $$,
    'whatever calls a volatile function is volatile'
);
select is_empty(
    $$
    select function from routine
    where volatility = 'i'
    and (
        body ~* '\m(from|join)\s+(jobq_private|jobq|pg_catalog)\.[a-z_]+\M(?!\()'
        or body ~* ('\m(now\(\)|clock_timestamp|current_setting|session_user'
            || '|current_user)')
    )
    $$,
    'nothing immutable reads a table, a clock or a setting'
);
select is_empty(
    $$
    select function from routine
    where parallel = 's'
    and body ~* ('\m(insert\s+into|update\s+jobq|delete\s+from|truncate|for\s+update'
        || '|for\s+share|nextval|pg_notify|pg_(try_)?advisory)')
    $$,
    'nothing that writes is parallel safe'
);

-- Dynamic SQL
select results_eq(
    $$
    select f.function
    from routine as f
    where regexp_replace(f.body, '--[^\n]*|''execute''', '', 'g') ~* '\mexecute\M'
    order by 1
    $$,
    $$
    values ('jobq.enforce_queue_grants(boolean)'),
    ('jobq.maintain()'), ('jobq.maintain_in()'),
    ('jobq_internal.run_calls(text[],boolean,uuid[],integer[],jsonb[],integer)'),
    ('jobq_private.drop_partitions()'),
    ('jobq_private.json_schema_violation(jsonb,jsonb)'),
    ('jobq_private.make_partition(text,date)')
    $$,
    'only what changes tables, runs tasks, or calls an extension runs dynamic SQL'
);
select is_empty(
    $$
    select f.function, m.found[1]
    from routine as f
    cross join lateral regexp_matches(
        regexp_replace(f.body, '--[^\n]*', '', 'g'), '(\mexecute\s[^;]*;)', 'gi'
    ) as m (found)
    where m.found[1] !~ '^execute\s+format\(\s*''' or m.found[1] ~ '%([0-9]+\$)?s'
    $$,
    'dynamic SQL is quoted by format(), from a literal without %s'
);

-- Tables, sequences and views
select is_empty(
    $$
    select c.oid::regclass, a.grantee::regrole, a.privilege_type
    from pg_catalog.pg_class as c
    cross join lateral aclexplode(c.relacl) as a
    where c.relnamespace = 'jobq_private'::regnamespace and a.grantee <> c.relowner
    $$,
    'nobody but its owner has any privilege on anything in jobq_private'
);
select is_empty(
    $$
    select a.attrelid::regclass, a.attname
    from pg_catalog.pg_attribute as a
    join pg_catalog.pg_class as c on c.oid = a.attrelid
    where c.relnamespace in (
        'jobq'::regnamespace, 'jobq_http'::regnamespace, 'jobq_internal'::regnamespace,
        'jobq_private'::regnamespace
    )
    and a.attacl is not null
    $$,
    'no privilege hides on a column'
);
select is_empty(
    $$
    select r.role, c.oid::regclass, p.privilege
    from role as r
    cross join pg_catalog.pg_class as c
    cross join unnest(
        array['select', 'insert', 'update', 'delete', 'truncate', 'references',
            'trigger']
    ) as p (privilege)
    where c.relnamespace = 'jobq_private'::regnamespace and c.relkind in ('r', 'p', 'v',
        'm')
    and has_table_privilege(r.role, c.oid, p.privilege)
    $$,
    'no role has any privilege on any table, by whatever way'
);
select is_empty(
    $$
    select c.oid::regclass from pg_catalog.pg_class as c
    where c.relnamespace in (
        'jobq'::regnamespace, 'jobq_http'::regnamespace, 'jobq_internal'::regnamespace,
        'jobq_private'::regnamespace
    )
    and c.relowner <> 'jobq_owner'::regrole
    $$,
    'jobq_owner owns every relation'
);
select is_empty(
    $$
    select c.oid::regclass from pg_catalog.pg_class as c
    where c.relnamespace in (
        'jobq'::regnamespace, 'jobq_http'::regnamespace, 'jobq_internal'::regnamespace,
        'jobq_private'::regnamespace
    )
    and c.relkind in ('r', 'p', 'v', 'm') and not c.relispartition
    and obj_description(c.oid, 'pg_class') is null
    $$,
    'every table and view has a comment'
);
select is_empty(
    $$
    select c.oid::regclass from pg_catalog.pg_class as c
    where c.relnamespace = 'jobq'::regnamespace and c.relkind not in ('v', 'c')
    $$,
    'the public schema holds views and types only'
);
select results_eq(
    $$
    select c.relname::text collate "default", (
        select string_agg(r.letter || ':' || p.privilege, ' ' order by r.ordinal,
            p.ordinal)
        from role as r
        cross join unnest(
            array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES',
                'TRIGGER']
        ) with ordinality as p (privilege, ordinal)
        where has_table_privilege(r.role, c.oid, p.privilege)
    )
    from pg_catalog.pg_class as c
    where c.relnamespace = 'jobq'::regnamespace and c.relkind = 'v'
    order by 1
    $$,
    'select m.view, m.privileges from may_use as m order by m.view',
    'each role has just the privileges of the matrix on each view'
);

-- Schemas and roles
select results_eq(
    $$
    select n.nspname::text collate "default", r.role, p.privilege
    from role as r
    cross join pg_catalog.pg_namespace as n
    cross join unnest(array['usage', 'create']) as p (privilege)
    where n.nspname in ('jobq', 'jobq_http', 'jobq_internal', 'jobq_private')
    and has_schema_privilege(r.role, n.oid, p.privilege)
    order by n.nspname, r.ordinal
    $$,
    $$
    select s.name, r.role, 'usage'
    from role as r, (values ('jobq'), ('jobq_http'), ('jobq_internal')) as s (name)
    order by s.name, r.ordinal
    $$,
    'roles use the public schema, none the private one, and none creates in either'
);
select is_empty(
    $$
    select n.nspname
    from pg_catalog.pg_namespace as n
    cross join lateral aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) as a
    where n.nspname in ('jobq', 'jobq_http', 'jobq_internal', 'jobq_private')
    and (a.grantee = 0 or n.nspowner <> 'jobq_owner'::regrole)
    $$,
    'PUBLIC has nothing on the schemas; jobq_owner owns them'
);
select is_empty(
    $$
    select r.rolname from pg_catalog.pg_roles as r
    where (r.rolname = 'jobq_owner' or r.rolname in (select role from role))
    and (
        r.rolcanlogin or r.rolsuper or r.rolcreaterole or r.rolcreatedb
        or r.rolreplication or r.rolbypassrls
    )
    $$,
    'no role logs in or has any attribute'
);
select results_eq(
    $$
    select m.roleid::regrole::text, m.member::regrole::text
    from pg_catalog.pg_auth_members as m
    where m.member in (select r.role::regrole from role as r)
    $$,
    $$ values ('jobq_reader', 'jobq_operator') $$,
    'the operator is a reader; no role is the owner or another'
);
select is_empty(
    $$
    select p.rolname
    from (
        select d.defaclnamespace, a.grantee
        from pg_catalog.pg_default_acl as d
        cross join lateral aclexplode(d.defaclacl) as a
        where d.defaclrole = 'jobq_owner'::regrole and d.defaclobjtype = 'f'
    ) as g
    join (select 0::oid as oid, 'public' as rolname) as p on p.oid = g.grantee
    $$,
    'a function made later gives PUBLIC nothing either'
);

-- Attacks
create function pg_temp.as_role(role text, statement text)
returns text
language plpgsql
set search_path = tap, public
as $$
begin
    perform set_config('role', role, true);
    execute statement;
    perform set_config('role', 'none', true);
    return 'ok';
exception
    when others then
        return sqlstate;
end
$$;
select is(
    pg_temp.as_role('jobq_producer', $$
        create temporary table job (like jobq.job);
        create temporary table setting (max_payload_bytes int, max_payload_depth int);
        create function pg_temp.now() returns timestamptz language sql
            as 'select timestamptz ''1999-01-01''';
        create function pg_temp.length(text) returns integer language sql as 'select 1';
        set local search_path = pg_temp, pg_catalog, jobq, jobq_private;
        do 'begin perform jobq.enqueue(''safe'', queue => ''hijack''); end'
    $$),
    'ok', 'a producer may shadow names as it likes'
);
select results_eq(
    $$ select j.kind, j.created_at = now() from jobq_private.job as j
    where j.queue = 'hijack' $$,
    $$ values ('safe', true) $$,
    'shadowed tables and functions do not catch what an API function does'
);
select is_empty('select * from pg_temp.job', 'nor see any of it');
select is(
    pg_temp.as_role(a.role, a.statement), '42501',
    format('%s is not allowed: %s', a.role, a.statement)
)
from (
    values
    ('jobq_worker', 'select jobq.enqueue(''x'')'),
    ('jobq_producer', 'update jobq.job set state = ''cancelled'''),
    ('jobq_operator', 'delete from jobq_private.job')
) as a (role, statement);

-- What a session has set changes nothing of what a function does
select is_empty(
    $$
    select r.function
    from routine as r
    where regexp_replace(
        regexp_replace(r.body, '--[^\n]*', '', 'g'), '(?i)E''([^''\\]|\\.|'''')*''', '', 'g'
    ) ~ '\\'
    and not coalesce(r.config, '{}') @> '{standard_conforming_strings=on}'
    $$,
    'who writes a backslash in a string says how strings are read'
);
set local standard_conforming_strings = off;
set local escape_string_warning = off;
select is(
    jobq_private.redacted_text('GET https://ada:hunter2@example.org'), 'GET https://***@example.org',
    'what is secret is found however strings are read'
);
set local standard_conforming_strings = on;
set local array_nulls = off;
select isnt_empty('select * from jobq.list_jobs()', 'null is null however arrays are read');
set local array_nulls = on;
set local datestyle = 'German';
set local timezone = 'Asia/Jakarta';
set local intervalstyle = 'sql_standard';
select jobq.enqueue('timely', queue => 'timely');
select is((select count(*) from jobq.claim('{timely}', 'w')), 1::bigint, 'a claim notes times');
set local datestyle = 'SQL, MDY';
select lives_ok(
    $$select jobq.claim('{timely}', 'w')$$, 'which the next one reads however times are written'
);
select is(
    jobq_private.moment_in('2026-07-16 03:30 UTC', 'Asia/Jakarta'), '2026-07-16T10:30:00+07:00',
    'an instant is shown as ISO 8601 says'
);

select * from finish();
rollback;
