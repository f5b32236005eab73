-- What jobq.work() and kinds with a function promise.
begin;
select plan(53);

create schema analytics;
grant usage on schema analytics to public;
create table analytics.done (n integer);
create role ops_declarer login in role jobq_worker, jobq_operator;
create role ops_runner login in role jobq_worker, jobq_producer;
create role ops_rival login in role jobq_worker, jobq_operator;
grant create, usage on schema analytics to ops_runner, ops_rival;
set local session authorization ops_runner;
create function analytics.refresh(payload jsonb)
returns jsonb
language plpgsql
as $$
begin
    insert into analytics.done values ((payload ->> 'n')::integer);
    if payload ? 'error' then
        raise exception using errcode = payload ->> 'error', message = 'as asked for';
    elsif payload ? 'sleep' then
        perform pg_sleep(5);
    end if;
    return jsonb_build_object('by', current_user, 'n', payload -> 'n');
end
$$;
create function analytics.count(payload jsonb)
returns integer
language sql
return 1;
revoke all on function analytics.refresh from public;
reset session authorization;
grant insert on analytics.done to ops_runner;
grant execute on function analytics.refresh to ops_declarer;

-- Declaring
set local session authorization ops_declarer;
select lives_ok(
    $$select jobq.put_kind(
        'refresh', run => 'analytics.refresh', retry_strategy => 'fixed',
        retry_initial_delay => '1 h', retry_jitter => 0
    )$$, 'a kind can be a function'
);
select is(jobq.settings('refresh') ->> 'run', 'analytics.refresh', 'settings() shows it');
select throws_ok(
    format('select jobq.put_kind(''refresh'', run => %L)', run), 'JQ007', null, claim
)
from (
    values
    ('analytics.nothing', 'not one that is not there'),
    ('analytics.count', 'nor one that returns something else'),
    ('refresh', 'nor one without its schema'),
    ('analytics.refresh; drop table x', 'nor more than a name'),
    ('analytics.refresh(jsonb)', 'nor its arguments'),
    ('analytics.1st', 'nor what would need quotes')
) as v (run, claim);
set local session authorization ops_rival;
select throws_ok(
    $$select jobq.put_kind('refresh', run => 'analytics.refresh')$$, '42501', null,
    'nor one that who declares it may not execute'
);
create function analytics.evil(payload jsonb)
returns jsonb
language sql
return to_jsonb(current_user);
select jobq.put_kind('evil', run => 'analytics.evil');
reset session authorization;

create function analytics.variadic(variadic payloads jsonb[])
returns jsonb[]
language sql
return payloads;
select throws_ok(
    $$select jobq.put_kind('refresh', run => 'analytics.variadic')$$, 'JQ007', null,
    'nor a variadic one'
);

-- Running
create temporary table made as
select n, jobq.enqueue('refresh', payload || jsonb_build_object('n', n), priority => -n) as job_id
from (
    values
    (1, '{}'::jsonb), (2, '{"error": "40001"}'), (3, '{"error": "22012"}'), (4, '{}')
) as v (n, payload);
grant select on made to ops_runner;
select jobq.enqueue('other');
select jobq.enqueue('evil');
set local session authorization ops_runner;
select results_eq(
    'select m.n, w.kind, w.state from jobq.work(''{default}'', 10) as w
    join made as m using (job_id) order by m.n',
    $$values (1, 'refresh', 'succeeded'), (2, 'refresh', 'retrying'), (3, 'refresh', 'dead'),
    (4, 'refresh', 'succeeded')$$,
    'each job ends by itself; the SQLSTATE decides what is tried again'
);
select is_empty('select jobq.work()', 'nothing is left that the log-in may run');
reset session authorization;
select set_eq(
    'select n from analytics.done', 'values (1), (4)',
    'what failed has undone its own work, and nothing of the others'
);
select is(
    (select (jobq.get_job(m.job_id)).result from made as m where m.n = 1),
    '{"by": "ops_runner", "n": 1}', 'a function runs with the rights of the log-in'
);
select is(
    (select (jobq.get_job(m.job_id)).last_error_code from made as m where m.n = 3), '22012',
    'the code of an error is its SQLSTATE'
);
select set_eq(
    'select kind from jobq.job where state = ''queued''', $$values ('other'), ('evil')$$,
    'other kinds, and functions of those whom the log-in does not trust, are left alone'
);
select is_empty(
    $$ select from jobq.job as j, jobq.explain(j.job_id) as e
    where j.kind = 'evil' and e.reason = 'no_function' $$,
    'explain() finds nothing where its owner is a worker himself'
);
create role ops_maker;
grant create on schema analytics to ops_maker;
alter function analytics.evil(jsonb) owner to ops_maker;
select is(
    (
        select e.explanation from jobq.job as j, jobq.explain(j.job_id) as e
        where j.kind = 'evil' and e.reason = 'no_function'
    ),
    'kind evil needs a worker whose login may call analytics.evil and trusts its owner ops_maker',
    'but names an owner whom no worker trusts'
);
select is(
    (select h.finding from jobq.health() as h where h.subject = 'functions' and not h.is_ok),
    'kind evil needs a worker whose login may call analytics.evil and trusts its owner ops_maker',
    'and so does health()'
);
select is_empty(
    'select jobq.work()', 'a superuser runs no function of those who are none'
);
create function analytics.guarded(payload jsonb)
returns jsonb
language sql
return payload;
revoke all on function analytics.guarded from public;
select jobq.put_kind('guarded', run => 'analytics.guarded');
select jobq.enqueue('guarded') as guarded \gset
set local session authorization ops_runner;
select is_empty('select jobq.work()', 'nor does a log-in run what it may not execute');
reset session authorization;
select ok(
    exists (select from jobq.explain(:'guarded') as e where e.reason = 'no_function'),
    'which explain() says where no worker may'
);
delete from jobq_private.kind where kind = 'guarded';
grant create on schema analytics to jobq_worker;
alter function analytics.evil(jsonb) owner to jobq_worker;
set local session authorization ops_runner;
select is_empty(
    'select jobq.work()', 'nor what belongs to a role that others are members of too'
);
reset session authorization;
alter function analytics.evil(jsonb) owner to ops_runner;
set local session authorization ops_runner;
select is(
    (select w.state from jobq.work() as w), 'succeeded', 'its own function it does run'
);
select is(
    (select count(*) from jobq.work('{nothing}')), 0::bigint, 'only the queues that are asked for'
);
reset session authorization;
select is(
    (select j.result from jobq.list_jobs(kind => 'evil') as j), '"ops_runner"',
    'a small result is stored as a large one is'
);
select jobq.pause_queue('default');
select jobq.enqueue('refresh', '{"n": 9}');
set local session authorization ops_runner;
select is_empty('select jobq.work()', 'and none that is paused');
reset session authorization;
select jobq.resume_queue('default');

-- A constraint that is looked at late
create table analytics.once (n integer unique deferrable initially deferred);
grant insert on analytics.once to ops_runner;
set local session authorization ops_runner;
create function analytics.once(payload jsonb)
returns jsonb
language plpgsql
as $$
begin
    insert into analytics.once values ((payload ->> 'n')::integer);
    return null;
end
$$;
grant execute on function analytics.once to ops_declarer;
reset session authorization;
select jobq.put_kind('once', 'late', run => 'analytics.once');
select jobq.enqueue('once', '{"n": 1}') from generate_series(1, 2);
set local session authorization ops_runner;
select set_eq(
    $$ select state from jobq.work('{late}') $$, $$ values ('succeeded'), ('dead') $$,
    'a deferred constraint fails its own job alone'
);
reset session authorization;

-- A timeout
select jobq.enqueue('refresh', '{"n": 10, "sleep": true}', queue => 'timed', priority => 1);
select jobq.enqueue('refresh', '{"n": 11}', queue => 'timed');
set local session authorization ops_runner;
set local statement_timeout = '1s';
create temporary table ended on commit drop as select w.state from jobq.work('{timed}') as w;
set local statement_timeout = 0;
select results_eq(
    'select state from ended', $$values ('retrying'), ('queued')$$,
    'a job that statement_timeout stops is tried again, and the next is given back'
);
select throws_ok('select jobq.work(null)', '22004', null, 'no queues are no argument');
select throws_ok('select jobq.work(max_jobs => -1)', '22023', null, 'nor is a negative number');
reset session authorization;
set local session authorization ops_declarer;
select throws_ok(
    'select jobq.put_kind(null, run => ''analytics.refresh'')', '22004', null,
    'a kind has a name'
);
reset session authorization;

-- Batches
set local session authorization ops_runner;
create function analytics.double(payloads jsonb[])
returns jsonb[]
language plpgsql
as $$
begin
    insert into analytics.done values (1000 + cardinality(payloads));
    if '"few"' = any(payloads) then
        return array[]::jsonb[];
    elsif '"none"' = any(payloads) then
        return null;
    end if;
    return array(select to_jsonb((p #>> '{}')::integer * 2) from unnest(payloads) as p);
end
$$;
revoke all on function analytics.double from public;
grant execute on function analytics.double to ops_declarer;
set local session authorization ops_declarer;
select jobq.put_kind(
    'double', run => 'analytics.double', queue => 'b', retry_on => '{21,22P02}'
);
select throws_ok(
    format('select jobq.put_kind(''k'', retry_on => %L)', a.list), '22023', null,
    a.list || ' names no errors'
)
from (values ('{4}'), ('{40,null}'), ('{P0001X}')) as a (list);
set local session authorization ops_runner;
create temporary table batch as
select n, jobq.enqueue('double', to_jsonb(n)) as job_id from generate_series(1, 5) as n;
select results_eq(
    $$ select b.n, w.state from jobq.work('{b}', 10) as w join batch as b using (job_id) order by 1 $$,
    $$ select n, 'succeeded' from generate_series(1, 5) as n $$, 'jobs are done in batches'
);
select results_eq(
    $$ select (jobq.get_job(b.job_id)).result from batch as b order by b.n $$,
    $$ select to_jsonb(n * 2) from generate_series(1, 5) as n $$, 'each with its own result'
);
truncate batch;
insert into batch
select n, jobq.enqueue('double', p) as job_id
from (values (1, '1'::jsonb), (2, '"x"'), (3, '3'), (4, '"few"'), (5, '"none"')) as v (n, p);
select results_eq(
    $$ select b.n, w.state from jobq.work('{b}', 10) as w join batch as b using (job_id) order by 1 $$,
    $$ values (1, 'succeeded'), (2, 'retrying'), (3, 'succeeded'), (4, 'retrying'), (5, 'succeeded') $$,
    'one that fails does not hold up the others of its batch, and retry_on says what is tried again'
);
select is(
    (select (jobq.get_job(b.job_id)).last_error_code from batch as b where b.n = 4), '21000',
    'a result must come for each job'
);
reset session authorization;
select bag_eq(
    'select n from analytics.done where n > 1000', 'values (1005), (1001), (1001), (1001)',
    'what a failed batch wrote is undone'
);
-- On a slow machine the retries are due by now, and would be among the thousand.
select jobq.cancel(b.job_id) from batch as b where b.n in (2, 4, 5);
set local session authorization ops_runner;
create table analytics.many (n integer);
select count(jobq.enqueue('double', to_jsonb(n))) from generate_series(1, 1000) as n;
select is(
    (select count(*) from jobq.work('{b}', 1000) as w where w.state = 'succeeded'), 1000::bigint,
    'a thousand at a time'
);

-- One that statement_timeout stops, of a batch that has failed
create function analytics.slow(payloads jsonb[])
returns jsonb[]
language plpgsql
as $$
begin
    if cardinality(payloads) > 1 then
        raise exception 'one by one';
    end if;
    raise exception using errcode = '57014';
end
$$;
reset session authorization;
select jobq.put_kind('slow', run => 'analytics.slow', queue => 'slow');
set local session authorization ops_runner;
select jobq.enqueue('slow', '1') from generate_series(1, 3);
select bag_eq(
    $$ select state from jobq.work('{slow}') $$, $$ values ('retrying'), ('queued'), ('queued') $$,
    'what is left of a batch is given back'
);

-- A function that goes while a call runs
create function analytics.goes(payload jsonb)
returns jsonb
language plpgsql
as $$
begin
    drop function analytics.gone;
    return null;
end
$$;
create function analytics.gone(payload jsonb)
returns jsonb
language sql
return payload;
reset session authorization;
select jobq.put_kind(kind, run => 'analytics.' || kind, queue => 'going')
from unnest('{goes,gone}'::text[]) as kind;
set local session authorization ops_runner;
select jobq.enqueue('goes', priority => 1), jobq.enqueue('gone');
select set_eq(
    $$ select kind, state from jobq.work('{going}') $$,
    $$ values ('goes', 'succeeded'), ('gone', 'queued') $$,
    'leaves its jobs waiting'
);
reset session authorization;
delete from jobq_private.kind where kind = 'gone';

-- A role that may not run what the log-in may
create function analytics.owned(payload jsonb)
returns jsonb
language sql
return payload;
revoke all on function analytics.owned from public;
grant execute on function analytics.owned to ops_runner;
select jobq.put_kind('owned', run => 'analytics.owned', queue => 'owned');
set local session authorization ops_runner;
select jobq.enqueue('owned');
set local role jobq_worker;
select is_empty($$ select jobq.work('{owned}') $$, 'a role that is set must be allowed to run it too');
reset role;

-- A function that leaves a role set fails alone
create function analytics.becomes(payload jsonb)
returns jsonb
language plpgsql
as $$
begin
    if payload = '"other"' then
        set role jobq_worker;
    end if;
    return payload;
end
$$;
reset session authorization;
select jobq.put_kind('becomes', run => 'analytics.becomes', queue => 'roles', max_attempts => 1);
set local session authorization ops_runner;
select jobq.enqueue('becomes', p) from unnest('{1,"\"other\"",3}'::jsonb[]) as p;
select bag_eq(
    $$ select w.state from jobq.work('{roles}') as w $$,
    $$ values ('succeeded'), ('dead'), ('succeeded') $$,
    'one that leaves a role of its own set fails, and no other'
);
reset session authorization;

-- A function that ends its own job, or another of the call
set local session authorization ops_runner;
create function analytics.meddles(payload jsonb)
returns jsonb
language plpgsql
as $$
begin
    if payload ->> 'does' = 'complete' then
        perform jobq.complete(j.job_id, 1, '"by itself"')
        from jobq.list_jobs(queue => 'own') as j
        where j.payload = meddles.payload and j.state = 'running';
    elsif payload ->> 'does' = 'release' then
        perform jobq.release(j.job_id, 1, now() + interval '1 day')
        from jobq.list_jobs(queue => 'own') as j
        where j.payload ->> 'does' = any(array['release', 'fail']) and j.state = 'running';
    elsif payload ->> 'does' = 'fail' then
        raise exception 'it is not its own any more';
    end if;
    return to_jsonb(repeat('x', (payload ->> 'size')::integer));
end
$$;
reset session authorization;
grant jobq_reader to ops_runner;
select jobq.put_kind('meddles', run => 'analytics.meddles', queue => 'own');
select jobq.enqueue('meddles', jsonb_build_object('does', v.does, 'size', v.size), priority => v.priority)
from (
    values ('none', 1, 9), ('release', 1, 8), ('release', 5000, 7), ('fail', 1, 6),
    ('complete', 1, 5), ('complete', 5000, 4)
) as v (does, size, priority);
set local session authorization ops_runner;
select bag_eq(
    $$ select w.state from jobq.work('{own}') as w $$,
    $$ values ('succeeded'), ('lost'), ('lost'), ('lost'), ('lost'), ('lost') $$,
    'what a function has itself given back or ended is told as lost, whatever comes of it'
);
select is(
    (select count(*) from jobq.list_jobs(queue => 'own') as j where j.state = 'queued'), 3::bigint,
    'and waits as it said'
);
reset session authorization;
select is(jobq.settings('meddles') ->> 'run', 'analytics.meddles', 'settings tell of the function');

-- A function that has gone
select ok(
    (select h.is_ok from jobq.health() as h where h.subject = 'functions'), 'health() misses none'
);
alter function analytics.meddles(jsonb) rename to meddled;
create function analytics.meddles(payload jsonb)
returns integer
language sql
return 1;
select jobq.enqueue('meddles', queue => 'gone') as gone \gset
select is_empty($$ select jobq.work('{gone}') $$, 'a job whose function has changed waits');
select is(
    (select e.explanation from jobq.explain(:'gone') as e where e.reason = 'no_function'),
    'kind meddles needs analytics.meddles(jsonb) returns jsonb, or the same with jsonb[]; found: '
    '(payload jsonb) returns integer; create it, or change the kind', 'explain() names it'
);
select is(
    (select h.finding from jobq.health() as h where h.subject = 'functions' and not h.is_ok),
    'kind meddles needs analytics.meddles(jsonb) returns jsonb, or the same with jsonb[]; found: '
    '(payload jsonb) returns integer', 'and so does health()'
);
drop function analytics.meddles(jsonb);
select is(
    (select h.finding from jobq.health() as h where h.subject = 'functions' and not h.is_ok),
    'kind meddles needs analytics.meddles(jsonb) returns jsonb, or the same with jsonb[]; found: none',
    'or that it is gone'
);

select * from finish();
rollback;
