-- What claims by pattern promise.
-- Needs more than the core.
begin;
select plan(17);

select jobq.enqueue('work', queue => q) from unnest('{tenant-b,tenant-a,other,tenant}'::text[]) as q;
select jobq.enqueue('work', queue => 'tenant-c', concurrency_key => 'k');
create function pg_temp.claimed(queues text[], max_jobs integer default 9)
returns text[]
language sql
return (select array_agg(c.queue order by c.queue) from jobq.claim(claimed.queues, 'w', claimed.max_jobs) as c);

select is(
    pg_temp.claimed('{tenant-*}'), '{tenant-a,tenant-b,tenant-c}',
    'a pattern stands for all queues that begin like it, also where jobs have keys'
);
select jobq.enqueue('work', queue => 'tenant-new');
select ok(jobq.due_in('{tenant-*}') <= '0 s', 'a new queue is there at once');
select is(pg_temp.claimed('{tenant-*}'), '{tenant-new}', 'and claimed from');
select is(jobq.due_in('{tenant-*}'), null, 'nothing is due where nothing waits');
select jobq.enqueue('work', queue => 'tenant-later', run_at => now() + interval '1 h');
select ok(jobq.due_in('{tenant-*}') > '50 min', 'a job that waits for its time is seen');
select is(pg_temp.claimed('{*}'), '{other,tenant}', '* stands for all queues');

select jobq.enqueue('work', queue => q) from unnest('{a*b,first,tenant-z}'::text[]) as q;
select results_eq(
    'select queue from jobq.claim(''{first,tenant-*}'', ''w'', 1)', 'values (''first'')',
    'a queue that is named comes first where it is named before the jobs of a pattern'
) as named;
select is(pg_temp.claimed('{a*b}'), '{a*b}', 'only a star at the end makes a pattern');
select is(pg_temp.claimed('{tenant-z*}'), '{tenant-z}', 'what is before the star may be the whole name');
select jobq.enqueue('work', queue => q) from unnest('{x-1,x-2}'::text[]) as q cross join generate_series(1, 40);
select is(
    (
        select count(distinct c.queue)
        from generate_series(1, 30) as n
        cross join lateral (select * from jobq.claim('{x-*}', 'w' || n, 1)) as c
    ), 2::bigint, 'queues of a pattern take turns at random'
);
select jobq.pause_queue('x-1');
select is(
    (select array_agg(distinct c.queue) from jobq.claim('{x-*}', 'w', 100) as c), '{x-2}',
    'a paused queue is left out'
);

-- Functions of the database
create function pg_temp.echo(payload jsonb) returns jsonb language sql return payload;
select jobq.put_kind('called', run => pg_my_temp_schema()::regnamespace::text || '.echo');
select jobq.enqueue('called', queue => 'calls-1');
select isnt_empty('select from jobq_internal.claim_calls(''{calls-*}'')', 'work() takes patterns too');

-- Explanations
select jobq.enqueue('strange', queue => 'y-1', run_at => now() - interval '2 min') as strange \gset
select is((select e.reason from jobq.explain(:'strange') as e limit 1), 'no_worker', 'a queue without a worker is named');
select jobq.heartbeat('w', '{}', '{}', '{y-*}', '{strange}');
select is(
    (select e.reason from jobq.explain(:'strange') as e limit 1), 'unknown_kind',
    'a worker serves the queues of its pattern'
);
select is_empty('select from jobq_private.unserved_queues() where queue = ''y-1''', 'which health() knows');
select is(
    (select u.queue from jobq_private.unknown_kinds() as u where u.kind = 'strange'), 'y-1',
    'as it knows which of its kinds nobody handles'
);
select is_empty(
    'select from jobq.queue_stats() where queue like ''%-*''', 'a pattern is not listed as a queue'
);

select * from finish();
rollback;
