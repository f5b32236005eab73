-- What enqueue_graph(), cancel_tree(), redrive_tree() and show_graph() promise.
begin;
select plan(59);

create function pg_temp.refusal(statement text)
returns text
language plpgsql
as $$
declare
    _code text;
    _detail text;
begin
    execute statement;
    return 'none';
exception
    when others then
        get stacked diagnostics _code = constraint_name, _detail = pg_exception_detail;
        return sqlstate || ' ' || _code
            || case when _code = 'GRAPH_CYCLE' then ': ' || _detail else '' end;
end
$$;

create function pg_temp.graph(jobs text)
returns text
language sql
as $$
select pg_temp.refusal(format('select jobq.enqueue_graph(%L)', '{"jobs": ' || jobs || '}'))
$$;

create function pg_temp.states()
returns text
language sql
as $$
select string_agg(n.name || ' ' || j.state, ', ' order by n.name collate "C")
from jobq_private.node as n
join jobq.job as j on j.job_id = n.job_id
$$;

create function pg_temp.done(name text, is_success boolean default true)
returns text
language plpgsql
as $$
declare
    _job_id constant uuid := (
        select n.job_id from jobq_private.node as n where n.name = done.name
    );
    _attempt constant integer := (select c.attempt from jobq.claim_job(_job_id, 'w') as c);
begin
    if is_success then
        perform jobq.complete(_job_id, _attempt, to_jsonb(name));
    else
        perform jobq.fail(_job_id, _attempt, 'boom', retryable => false);
    end if;
    perform jobq_private.resolve();
    return pg_temp.states();
end
$$;

-- A diamond, whose jobs come in any order
select results_eq(
    $$
    select name from jobq.enqueue_graph('{"jobs": [
        {"name": "d", "kind": "report", "after": ["b", "c"]},
        {"name": "b", "kind": "resize", "after": ["a"], "payload": {"n": 1}},
        {"name": "a", "kind": "fetch", "priority": 3},
        {"name": "c", "kind": "resize", "after": ["a"]}
    ]}')
    $$,
    $$values ('d'), ('b'), ('a'), ('c')$$, 'a row for each job, as they were given'
);
select is(pg_temp.states(), 'a queued, b blocked, c blocked, d blocked', 'what waits is blocked');
select is_empty('select from jobq_private.pending', 'nobody has to look at what is new');
select is(
    (select (j.payload, j.kind)::text from jobq.job as j
    join jobq_private.node as n on n.job_id = j.job_id where n.name = 'b'),
    '("{""n"": 1}",resize)', 'each has its options'
);
select is(pg_temp.done('a'), 'a succeeded, b queued, c queued, d blocked', 'a releases two');
select is(pg_temp.done('b'), 'a succeeded, b succeeded, c queued, d blocked', 'one is not enough');
select is(pg_temp.done('c'), 'a succeeded, b succeeded, c succeeded, d queued', 'both are');
select results_eq(
    $$
    select i.name, i.result
    from jobq_private.node as n
    cross join lateral jobq_internal.list_inputs(n.job_id) as i
    where n.name = 'd'
    order by 1
    $$,
    $$values ('b', '"b"'::jsonb), ('c', '"c"')$$, 'inputs have their names'
);
delete from jobq_private.node;

-- What is refused
select is(
    pg_temp.graph('[{"name": "a", "kind": "k", "after": ["c"]},
        {"name": "b", "kind": "k", "after": ["a"]}, {"name": "c", "kind": "k", "after": ["b"]},
        {"name": "below", "kind": "k", "after": ["c"]}]'),
    '22023 GRAPH_CYCLE: a waits for c waits for b waits for a', 'a way round, and which'
);
select is(pg_temp.graph('[{"name": "a", "kind": "k", "after": ["a"]}]'),
    '22023 GRAPH_CYCLE: a waits for a', 'a job that waits for itself');
select is(pg_temp.graph('[{"name": "a", "kind": "k", "after": ["b"]}]'),
    'JQ001 JOB_NOT_FOUND', 'a name that nobody has');
select matches(
    pg_temp.graph((
        select jsonb_agg(jsonb_build_object(
            'name', repeat('n', 70) || n, 'kind', 'k', 'after', array[repeat('n', 70) || n % 21 + 1]
        ))::text
        from generate_series(1, 21) as n
    )),
    ': n{63}…( waits for n{63}…){19} waits for …$', 'a long way is cut, with a sign, and so are long names'
);
select is(pg_temp.graph(format('[{"name": "a", "kind": "k", %s}]', m.member)),
    '22023 INVALID_ARGUMENT', m.member || ' is no list of names')
from (
    values ('"after": [null]'), ('"before": [null]'), ('"after": [["a"]]'), ('"after": {"a": "b"}'),
    ('"expires_at": "2001-01-01"')
) as m (member);
select is(pg_temp.graph('[{"name": "x", "kind": "x", "after": null, "expires_at": "2999-01-01 UTC"}]'),
    'none', 'a job of a graph may expire');
select is((select j.expires_at from jobq.job as j where j.kind = 'x'), '2999-01-01 UTC'::timestamptz,
    'and then it does');
select jobq.delete_many(kind => 'x');
select is(
    pg_temp.refusal($$ select jobq.create_schedule('s', 'k', '@daily',
        graph => '{"jobs": [{"name": "x", "kind": "x", "expires_at": "2999-01-01"}]}') $$),
    '22023 INVALID_ARGUMENT', 'but none of a schedule''s'
);
select is(
    pg_temp.refusal($$ select jobq.create_schedule('s', 'k', '@daily',
        graph => '{"jobs": [{"name": "x", "kind": "x", "run_at": "2999-01-01"}]}') $$),
    '22023 INVALID_ARGUMENT', 'nor with a moment to run at, which is past at the second slot'
);
select is(
    pg_temp.graph('[{"name": "a", "kind": "k",
        "after": ["00000000-0000-7000-8000-000000000000"]}]'),
    'JQ001 JOB_NOT_FOUND', 'an id that no job has'
);
select is(pg_temp.graph('[{"name": "a", "kind": "k"}, {"name": "a", "kind": "k"}]'),
    '22023 INVALID_ARGUMENT', 'a name twice');
select is(pg_temp.graph('[{"kind": "k"}]'), '22023 INVALID_ARGUMENT', 'no name');
select is(pg_temp.graph(format('[{"name": "%s", "kind": "k"}]', repeat('n', 257))),
    '22023 INVALID_ARGUMENT', 'a name of 257 characters');
select is(pg_temp.graph('[{"name": "a", "kind": "k"}, {"name": "b", "kind": ""}]'),
    '22023 INVALID_ARGUMENT', 'a job that is refused by itself');
select is(pg_temp.graph('[{"name": "a", "kind": "k", "dedup_key": "x"}]'),
    '22023 INVALID_ARGUMENT', 'a key');
select is(pg_temp.graph('[{"name": "a", "kind": "k", "after": "b"}]'),
    '22023 INVALID_ARGUMENT', 'after that is no array');
select is(pg_temp.graph('[{"name": "a", "kind": "k", "after": [1]}]'),
    '22023 INVALID_ARGUMENT', 'or not of texts');
select is(pg_temp.graph('[{"name": "a", "kind": "k", "after_failure": "pray"}]'),
    '22023 INVALID_ARGUMENT', 'an after_failure that does not exist');
select is(pg_temp.graph('[]'), '22023 INVALID_ARGUMENT', 'no jobs');
select is(pg_temp.graph('[1]'), '22023 INVALID_ARGUMENT', 'what is no object');
select is(
    pg_temp.graph((select jsonb_agg('{}'::jsonb)::text from generate_series(1, 100001))),
    '22023 INVALID_ARGUMENT', '100,001 jobs'
);
select is(pg_temp.refusal('select jobq.enqueue_graph(null)'), '22004 NULL_ARGUMENT', 'null');
select is(pg_temp.refusal('select jobq.enqueue_graph(''{"jobs": [], "job": 1}'')'),
    '22023 INVALID_ARGUMENT', 'other members');
select is((select count(*) from jobq_private.node), 0::bigint, 'all of that left nothing');

-- Jobs that join a graph from its own handler
select from jobq.enqueue_graph('{"jobs": [
    {"name": "split", "kind": "k"}, {"name": "join", "kind": "k", "after": ["split"]},
    {"name": "end", "kind": "k", "after": ["join"]}
]}');
select n.job_id as split from jobq_private.node as n where n.name = 'split' \gset
select from jobq.claim_job(:'split', 'w');
select lives_ok(
    format($$select jobq.enqueue_graph('{"jobs": [
        {"name": "part", "kind": "k", "after": ["split"], "before": ["join"]},
        {"name": "part#2", "kind": "k", "before": ["join"]}
    ]}', %L)$$, :'split'),
    'a handler adds jobs for which a blocked one is to wait'
);
select is(
    pg_temp.refusal(format($$select jobq.enqueue_graph('{"jobs": [
        {"name": "late", "kind": "k", "after": ["end"], "before": ["join"]}]}', %L)$$, :'split')),
    '22023 GRAPH_CYCLE: late waits for end waits for join waits for late',
    'but none that would wait for it'
);
select is(
    pg_temp.refusal(format($$select jobq.enqueue_graph('{"jobs": [
        {"name": "part", "kind": "k"}]}', %L)$$, :'split')),
    '22023 INVALID_ARGUMENT', 'nor one of a name that the graph has'
);
select is(
    pg_temp.refusal(format($$select jobq.enqueue_graph('{"jobs": [
        {"name": "x", "kind": "k", "before": ["split"]}]}', %L)$$, :'split')),
    'JQ002 ILLEGAL_STATE', 'nor is anything added before a job that is not blocked'
);
select jobq.enqueue('apart') as apart \gset
select jobq.enqueue('waits apart', after => array[:'apart']::uuid[]) as waits_apart \gset
select lives_ok(
    format($$select jobq.enqueue_graph('{"jobs": [
        {"name": "also", "kind": "also", "before": ["%s"]}]}', %L)$$, :'waits_apart', :'split'),
    'any blocked job may come to wait, by its id'
);
select is(
    (select count(*) from jobq_internal.list_inputs(:'waits_apart')), 2::bigint, 'and it does'
);
select jobq.delete_many(kind => k) from unnest('{waits apart,also,apart}'::text[]) as k;
delete from jobq_private.node where name = 'also';
select jobq.complete(:'split', 1);
select jobq_private.resolve();
select is(
    pg_temp.states(),
    'end blocked, join blocked, part queued, part#2 queued, split succeeded',
    'the end of the handler''s job is not enough'
);
select is(
    pg_temp.refusal(format($$select jobq.enqueue_graph('{"jobs": [
        {"name": "x", "kind": "k"}]}', %L)$$, :'split')),
    'JQ002 ILLEGAL_STATE', 'who has ended adds nothing'
);
select pg_temp.done('part#2');
select is(
    pg_temp.done('part', false),
    'end cancelled, join cancelled, part dead, part#2 succeeded, split succeeded',
    'a part that dies takes what waits for it along'
);

-- The tree
select n.job_id as part from jobq_private.node as n where n.name = 'part' \gset
select is(
    (select count(*) from jobq.redrive_tree(:'split')), 3::bigint,
    'redrive_tree() runs again what failed'
);
select is(
    (
        select string_agg(n ->> 'error_code', ' ')
        from jsonb_array_elements(jobq_internal.show_graph(:'split') -> 'nodes') as n
    ), null, 'which have no error any more'
);
select is(
    pg_temp.states(),
    'end blocked, join blocked, part queued, part#2 succeeded, split succeeded',
    'what waits for it is blocked again'
);
select is(
    (select string_agg(c.outcome, ' ') from jobq.cancel_tree(:'part', scope => 'downstream') as c),
    'cancelled cancelled cancelled', 'cancel_tree() takes what waits for a job'
);
select jobq_private.resolve();
select is((select count(*) from jobq.redrive_tree(:'split')), 0::bigint,
    'what somebody has cancelled has not failed');
select is((select count(*) from jobq.redrive_tree(:'part', 'downstream')), 3::bigint,
    'downstream takes it all the same');
select is(pg_temp.done('part'),
    'end blocked, join queued, part succeeded, part#2 succeeded, split succeeded',
    'and the graph goes on where it was');
select is(
    (
        select (d ->> 'is_whole') || ' ' || jsonb_array_length(d -> 'nodes') || ' '
            || jsonb_array_length(d -> 'edges')
        from jobq_internal.show_graph(:'split') as d
    ),
    'true 5 5', 'show_graph() has all nodes and edges'
);
select is(
    (
        select n ->> 'held_up_by' = j.job_id::text
        from jobq_private.node as j
        cross join jsonb_array_elements(jobq_internal.show_graph(:'split') -> 'nodes') as n
        where n ->> 'name' = 'end' and j.name = 'join'
    ),
    true, 'and says which job holds up one that is blocked'
);
select is((select (d ->> 'is_whole')::boolean from jobq_internal.show_graph(:'split', 2) as d), false,
    'or that there are more');
select is(pg_temp.refusal('select jobq_internal.show_graph(gen_random_uuid())'), 'JQ001 JOB_NOT_FOUND',
    'a job that is not there has no graph');

-- A chain of a thousand
select job_id as middle
from jobq.enqueue_graph((
    select jsonb_build_object('jobs', jsonb_agg(
        jsonb_build_object('name', n::text, 'kind', 'k')
        || case when n > 1 then jsonb_build_object('after', array[(n - 1)::text]) else '{}' end
    ))
    from generate_series(1, 1000) as n
))
where name = '500' \gset
set local statement_timeout = '60s';
select results_eq(
    format($$
        select count(*), count(distinct n ->> 'held_up_by'), min(f.name) collate "default"
        from jsonb_array_elements(jobq_internal.show_graph(%L) -> 'nodes') as n
        join jobq_private.node as f on f.job_id = (n ->> 'held_up_by')::uuid
    $$, :'middle'),
    $$ values (999::bigint, 1::bigint, '1') $$, 'show_graph() looks at each arrow once'
);

-- Kinds whose payloads have dedup keys
delete from jobq_private.node;
select jobq.put_kind('once', dedup_key => '{id}');
select jobq.enqueue('once', '{"id": 1}');
select from jobq.enqueue_graph('{"jobs": [
    {"name": "one", "kind": "once", "payload": {"id": 1}},
    {"name": "two", "kind": "k", "after": ["one"]}
]}');
select is(pg_temp.states(), 'one queued, two blocked',
    'no live job with the same dedup key takes the place of a job of a graph');

-- A schedule
select jobq.create_schedule('nightly', 'open', every => '1 h', graph => '{"jobs": [
    {"name": "books", "kind": "k"}, {"name": "mail", "kind": "k", "after": ["books"]}
]}');
delete from jobq_private.node;
update jobq_private.schedule set next_run_at = now() - interval '1 min';
select from jobq_internal.tick();
select is(pg_temp.states(), 'books blocked, mail blocked, open queued',
    'a schedule fires a graph behind its job');

select * from finish();
rollback;
