-- What enqueue(after => …), list_inputs() and explain() promise of jobs that wait for others.
begin;
select plan(75);

-- This transaction's own ends are looked at once more after the commit.
create view pg_temp.to_look_at as
select from jobq_private.pending where about <> 'parent' or due_at = '-infinity';

create function pg_temp.state(kind text)
returns text
language sql
as $$
select j.state from jobq.job as j where j.kind = state.kind
$$;

-- No parents
select from jobq.enqueue('alone', after => '{}');
select is(pg_temp.state('alone'), 'queued', 'a job that waits for none is queued');
select from jobq.enqueue_many('[{"kind": "alone2", "after": []}]');
select is(pg_temp.state('alone2'), 'queued', 'in a batch, too');
select from jobq.claim('{default}', 'w', 10);

-- Two parents, one child
select jobq.enqueue('a') as a \gset
select jobq.enqueue('b') as b \gset
select jobq.enqueue('c', after => array[:'a', :'b']::uuid[]) as c \gset
select is(pg_temp.state('c'), 'blocked', 'a job that waits for others is blocked');
select results_eq(
    'select kind from jobq.claim(''{default}'', ''w'', 10) order by 1',
    $$values ('a'::text collate "default"), ('b')$$, 'and no worker gets it'
);
select results_eq(
    format('select reason, explanation from jobq.explain(%L) where reason = ''blocked''', :'c'),
    $$values ('blocked', 'waits for 2 of 2 jobs')$$, 'explain() says for how many it waits'
);
select is(
    (select count(*) from jobq.explain(:'c') as e where e.reason = 'held_up'), 2::bigint,
    'and which jobs hold it up'
);
select ok(jobq.complete(:'a', 1, '"of a"'), 'the first parent ends');
select from jobq.claim('{default}', 'w', 10);
select is(pg_temp.state('c'), 'blocked', 'one parent of two is not enough');
select ok(jobq.complete(:'b', 1, '"of b"'), 'the second parent ends');
select results_eq(
    'select kind from jobq.claim(''{default}'', ''w'', 10)',
    $$values ('c'::text collate "default")$$, 'the claim after the last parent has the child'
);
select ok(
    (jobq.get_job(:'c')).run_at > (jobq.get_job(:'b')).finished_at,
    'which no claim could have taken that began before'
);
select results_eq(
    format('select kind, state, result, after_failure from jobq_internal.list_inputs(%L)', :'c'),
    $$values ('a'::text collate "default", 'succeeded'::text, '"of a"'::jsonb,
        'cancel'::text), ('b', 'succeeded', '"of b"', 'cancel')$$,
    'its inputs are what the parents have returned'
);
select is(
    (select j.attempts from jobq.job as j where j.kind = 'c'), 1,
    'being released is no attempt, and none is given back'
);
select is_empty('select from pg_temp.to_look_at', 'nothing is left to look at');
select is(
    jobq.enqueue('late', after => array[:'a']::uuid[]) is not null, true,
    'a job may wait for one that has ended'
);
select results_eq(
    'select kind from jobq.claim(''{default}'', ''w'', 10)',
    $$values ('late'::text collate "default")$$, 'and runs at the next claim'
);

-- What is refused
select is(
    refusal('select jobq.enqueue(''x'', after => array[gen_random_uuid()])'),
    'JQ001 JOB_NOT_FOUND', 'a parent that is not there is refused'
);
select is(
    refusal('select jobq.enqueue(''x'', after => array[null::uuid])'),
    '22004 NULL_ARGUMENT', 'and null'
);
select is(
    refusal(format(
        'select jobq.enqueue(''x'', after => %L, after_failure => ''shrug'')', array[:'a']::uuid[]
    )),
    '22023 INVALID_ARGUMENT', 'after_failure is one of three'
);
select is(
    refusal($$select jobq.enqueue_many('[{"kind": "x", "after": ["nobody"]}]')$$),
    '22023 INVALID_ARGUMENT', 'an id is a UUID'
);
select is(refusal('select jobq_internal.list_inputs(null)'), '22004 NULL_ARGUMENT',
    'null has no inputs');
select is(pg_temp.state('x'), null, 'what was refused left nothing');

-- A parent that dies
select jobq.enqueue('d', max_attempts => 1) as d \gset
select count(*) as made from jobq.enqueue_many(format($$[
    {"kind": "cancelled", "after": ["%1$s"]},
    {"kind": "waits", "after": ["%1$s"], "after_failure": "wait"},
    {"kind": "runs", "after": ["%1$s"], "after_failure": "run"}
]$$, :'d')::jsonb) \gset
select j.job_id as cancelled from jobq.job as j where j.kind = 'cancelled' \gset
select jobq.enqueue('below', after => array[:'cancelled']::uuid[]) as below \gset
select from jobq.claim('{default}', 'w', 10);
select is(jobq.fail(:'d', 1, 'boom'), 'dead', 'a parent dies');
select results_eq(
    'select kind from jobq.claim(''{default}'', ''w'', 10)',
    $$values ('runs'::text collate "default")$$, 'what is to run in any case runs'
);
select is(pg_temp.state('cancelled'), 'cancelled', 'the child is cancelled');
select is(pg_temp.state('below'), 'cancelled', 'and what waits for that');
select is(pg_temp.state('waits'), 'blocked', 'what is to wait waits');
select is(
    (select j.last_error_code from jobq.job as j where j.kind = 'below'), 'PARENT_FAILED',
    'the error code says why'
);
select jobq.redrive(:'below');
select from jobq.claim('{default}', 'w', 10);
select is(pg_temp.state('below'), 'cancelled', 'redriven without its parent it is cancelled again');
select jobq.redrive(:'d');
select jobq.redrive(:'cancelled');
select jobq.redrive(:'below');
select is(pg_temp.state('below'), 'blocked', 'redriven with it, it waits');
select is(
    (select string_agg(c.kind, ' ') from jobq.claim('{default}', 'w', 10) as c), 'd',
    'the parent runs first'
);
select is(
    (
        select string_agg(x.kind, ' ' order by x.kind)
        from (
            select e.kind from jobq.exchange('{default}', 'w', 10, array[:'d']::uuid[], '{2}') as e
            union all
            -- what a savepoint of this transaction has touched may come with the next claim
            select c.kind from jobq.claim('{default}', 'w', 10) as c
        ) as x
    ),
    'cancelled waits', 'then all that had waited for it, in the exchange that ends it'
);

-- A blocked job that is cancelled, expires, or is deleted
select jobq.enqueue('p') as p \gset
select jobq.enqueue('q', after => array[:'p']::uuid[]) as q \gset
select jobq.enqueue('r', after => array[:'q']::uuid[]) as r \gset
select is(jobq.cancel(:'q', 'not wanted'), 'cancelled', 'a blocked job is cancelled at once');
select from jobq.claim('{default}', 'w', 0);
select from jobq_private.resolve();
select is(pg_temp.state('r'), 'cancelled', 'and what waits for it');
select is(pg_temp.state('p'), 'queued', 'but not what it waited for');
select jobq.enqueue('s', after => array[:'p']::uuid[]) as s \gset
select results_eq(
    format('select * from jobq.delete_many(array[%L]::uuid[])', :'p'),
    format('values (%L::uuid)', :'p'), 'a parent is deleted'
);
select from jobq_private.resolve();
select is(pg_temp.state('s'), 'cancelled', 'then its child is cancelled');
select is_empty(
    'select from pg_temp.to_look_at', 'and nobody has to look again'
);

-- Parents that are redriven while a child waits for another, or has been cancelled
select jobq.enqueue('p1', max_attempts => 1) as p1 \gset
select jobq.enqueue('p2') as p2 \gset
select jobq.enqueue('r', after => array[:'p1', :'p2']::uuid[], after_failure => 'run') as r \gset
select from jobq.claim_job(:'p1', 'w');
select from jobq.fail(:'p1', 1, 'boom');
select from jobq_private.resolve();
select jobq.redrive(:'p1');
select from jobq.claim_job(:'p2', 'w');
select from jobq.complete(:'p2', 1);
select from jobq_private.resolve();
select is(pg_temp.state('r'), 'blocked',
    'a job that runs when its parents have ended waits for one that lives again');
select from jobq.cancel(:'r');
select jobq.redrive(:'r');
select from jobq_private.resolve();
select is(pg_temp.state('r'), 'blocked', 'also when it is redriven itself');
select from jobq.claim_job(:'p1', 'w');
select from jobq.fail(:'p1', 2, 'boom');
select from jobq_private.resolve();
select is(pg_temp.state('r'), 'queued', 'and runs when that has ended');
select from jobq.cancel(:'r');
select results_eq(
    format('select * from jobq.redrive_tree(%L, ''all'') order by 1', :'r'),
    format('select * from unnest(array[%L, %L]::uuid[]) order by 1', :'p1', :'r'),
    'both are redriven with their tree'
);
select from jobq_private.resolve();
select is(pg_temp.state('r'), 'blocked', 'and the child waits again');
select is_empty('select from pg_temp.to_look_at', 'nobody has to look: its parent tells');

-- A blocked job that expires
select jobq.enqueue('never') as never \gset
select jobq.enqueue('x', after => array[:'never']::uuid[], expires_at => now() + interval '1 h')
as x \gset
update jobq_private.job set expires_at = now() - interval '1 s', run_at = now() - interval '2 s'
where job_id = :'x';
select is(jobq_private.expire_jobs(10), 1::bigint, 'a job expires while it waits for others');
select is((jobq.get_job(:'x')).last_error_code, 'EXPIRED', 'as it does in its queue');
select from jobq.redrive_many(kind => 'x');
select is(pg_temp.state('x'), 'blocked', 'and waits for them again when it is redriven');

-- Keys
select jobq.enqueue('t') as t \gset
select jobq.enqueue('k', after => array[:'t']::uuid[], idempotency_key => 'i') as k \gset
select jobq.enqueue('l', after => array[:'t']::uuid[], dedup_key => 'd', dedup => 'skip') as l
\gset
select is(
    jobq.enqueue('k', after => array[gen_random_uuid()], idempotency_key => 'i')::text, :'k',
    'a key that is held gives its job, whatever it waits for'
);
select isnt(
    jobq.enqueue('l', dedup_key => 'd', dedup => 'replace')::text, :'l',
    'a blocked job gives way to the one that replaces it'
);
select is(
    (select j.state from jobq.job as j where j.job_id = :'l'), 'cancelled', 'and is cancelled'
);
select throws_ok(
    format('insert into jobq_private.job (job_id, kind, queue, lease, timeout, max_attempts,'
        ' state, previous_state) values (gen_random_uuid(), ''z'', ''q'', ''1 s'', ''1 s'', 1,'
        ' ''blocked'', ''dead'')'),
    'JQ002', null, 'nobody forges a blocked job with a past'
);

-- Let go by hand
select jobq.enqueue('p19') as p19 \gset
select jobq.enqueue('hand', queue => 'hand', after => array[:'p19']::uuid[]) as hand \gset
update jobq.job as j set state = 'queued' where j.job_id = :'hand';
select results_eq(
    $$ select kind collate "default" from jobq.claim('{hand}', 'w') $$, $$ values ('hand') $$,
    'who may change a job can let it go before its parents'
);
select is(
    (select i.state from jobq_internal.list_inputs(:'hand') as i), 'queued', 'and it sees how far those are'
);
select from jobq.claim_job(:'p19', 'w');
select jobq.fail(:'p19', 1, 'boom', retryable => false);
select from jobq_private.resolve();
select is(pg_temp.state('hand'), 'running', 'whose ends are nothing to it');
select ok(jobq.complete(:'hand', 1), 'as it goes on');

-- The same with a concurrency key, which limits keep in a key
select jobq.put_queue('keys', key_max_running => 1);
select jobq.enqueue('p20') as p20 \gset
select jobq.enqueue('keyed', queue => 'keys', concurrency_key => 'k', after => array[:'p20']::uuid[])
as keyed \gset
update jobq.job as j set state = 'queued' where j.job_id = :'keyed';
select ok(
    exists (select from jobq.maintain() as m where m.affected is not null),
    'maintain() finds what was let go with a key'
);
select results_eq(
    $$ select kind collate "default" from jobq.claim('{keys}', 'w') $$, $$ values ('keyed') $$,
    'and then it is claimed'
);

-- debounce
select jobq.enqueue('d', '1', after => array[:'t']::uuid[], dedup_key => 'e', dedup => 'debounce')
as d \gset
select is(
    jobq.enqueue('d', '3', after => array[:'t']::uuid[], dedup_key => 'e', dedup => 'debounce')::text,
    :'d', 'a blocked job stands for a later call'
);
select is(
    (select j.state || ' ' || j.payload::text from jobq.job as j where j.job_id = :'d'),
    'blocked 3', 'and takes its payload, and waits'
);
select jobq.enqueue('d', dedup_key => 'f', dedup => 'debounce', run_at => now()) as begun \gset
select from jobq.claim_job(:'begun', 'w');
select jobq.enqueue('p21') as p21 \gset
select jobq.enqueue('p22') as p22 \gset
select jobq.enqueue(
    'd', after => array[:'p21', :'p22']::uuid[], dedup_key => 'f', dedup => 'debounce'
) as next \gset
select from jobq.claim_job(:'p21', 'w');
select jobq.complete(:'p21', 1);
select jobq.fail(:'begun', 1, 'boom', retryable => false);
select from jobq_private.resolve();
select is(
    (jobq.get_job(:'next')).state, 'blocked',
    'after a debounced job that has begun, the next one waits, however that ends'
);
select from jobq.claim_job(:'p22', 'w');
select jobq.fail(:'p22', 1, 'boom', retryable => false);
select from jobq_private.resolve();
select is(
    (jobq.get_job(:'next')).state, 'cancelled', 'but is cancelled if a parent fails'
);

-- What its kind keeps no longer is kept for the job that waited for it, and for the one beyond
select jobq.put_kind('brief', keep_succeeded => '1 s');
select jobq.enqueue('brief', queue => 'kept') as b1 \gset
select jobq.enqueue('brief', queue => 'kept') as b2 \gset
select jobq.enqueue('brief', queue => 'kept') as b3 \gset
select jobq.enqueue('tries', queue => 'kept', max_attempts => 1, after => array[:'b1', :'b2']::uuid[])
as tries \gset
select jobq.enqueue('beyond', after => array[:'tries']::uuid[], after_failure => 'wait');
select from jobq.claim('{kept}', 'w', 10);
select from jobq.complete_many(array[:'b1', :'b2', :'b3']::uuid[], '{1,1,1}', '[77,78,79]');
select from jobq.claim('{kept}', 'w', 10);
select jobq.fail(:'tries', 1, 'boom');
select from jobq_private.resolve();
select jobq.enqueue('late', after => array[:'b3']::uuid[], run_at => now() + interval '1 year');
select jobq.enqueue('brief', queue => 'kept') as b4 \gset
select from jobq.claim('{kept}', 'w', 10);
select jobq.complete(:'b4', 1);
select from jobq_private.resolve();

create function pg_temp.pruned()
returns bigint
language plpgsql
as $$
begin
    set local session_replication_role = replica;
    update jobq_private.job_archive as a set prune_at = now() - interval '1 s'
    where a.kind = 'brief' and a.prune_at is not null;
    set local session_replication_role = origin;
    return jobq_private.prune_jobs(100);
end
$$;

select is(pg_temp.pruned(), 1::bigint, 'only what nobody waited for is forgotten');
select ok(
    (select bool_and(a.prune_at is null) from jobq_private.job_archive as a
    where a.job_id in (:'b1', :'b2')),
    'what a finished job waited for is kept as long as that, and not looked at again'
);
select ok(
    (select a.prune_at > now() from jobq_private.job_archive as a where a.job_id = :'b3'),
    'what a live one waited for is looked at later, though it had ended before'
);
select from jobq.redrive_tree(:'tries');
select results_eq(
    format('select result from jobq_internal.list_inputs(%L)', :'tries'),
    $$ values ('77'::jsonb), ('78') $$, 'so a job that is redriven has its inputs'
);
select from jobq.claim_job(:'tries', 'w');
select jobq.complete(:'tries', 2);
select from jobq.delete_many(kind => 'beyond');
select from jobq.delete_many(array[:'tries']::uuid[]);
select is(pg_temp.pruned(), 0::bigint, 'kept by all, they go with their day');

select throws_ok(
    'select jobq.enqueue(''k'', after_failure => ''zz'')', '22023', null,
    'after_failure is looked at, whether the job waits or not'
);

-- A child that another's end has released is left alone by workers that do not know its kind.
select jobq.enqueue('known', queue => 'parts') as k \gset
select jobq.enqueue('unknown', queue => 'parts', after => array[:'k']::uuid[]);
select from jobq.claim('{parts}', 'w');
select jobq.complete(:'k', 1);
update jobq_private.pending set due_at = clock_timestamp() - interval '1 s';
select is_empty(
    $$select kind from jobq.claim('{parts}', 'w', 10, except_kinds => '{unknown}')$$,
    'a claim leaves children of kinds that it does not know'
);
select results_eq(
    $$select kind from jobq.claim('{parts}', 'v', 10)$$,
    $$values ('unknown'::text collate "default")$$, 'and another takes them'
);

-- A parent that is deleted is told as gone, until the job hears of it
select jobq.enqueue('gone') as gone \gset
select jobq.enqueue('left', after => array[:'gone']::uuid[]) as left \gset
select from jobq.delete_many(job_ids => array[:'gone']::uuid[]);
select results_eq(
    format('select explanation from jobq.explain(%L) where reason = ''held_up''', :'left'),
    format('values (''job_id %s, which was deleted or is not visible'')', :'gone'),
    'explain() tells of a parent that is gone'
);

-- Under grants by queue: a redrive holds up a hidden child that runs however its parents end
select jobq.enqueue('pv', queue => 'seen', max_attempts => 1) as pv \gset
select jobq.enqueue('ph', queue => 'hidden') as ph \gset
select jobq.enqueue(
    'anyhow', queue => 'hidden', after => array[:'pv', :'ph']::uuid[], after_failure => 'run'
);
select jobq.enqueue('sees', queue => 'seen', after => array[:'ph']::uuid[]) as sees \gset
select from jobq.claim('{seen,hidden}', 'w', 10);
select jobq.fail(:'pv', 1, 'boom');
select from jobq_private.resolve();
create role one_queue login;
grant jobq_worker, jobq_operator, jobq_producer to one_queue;
select jobq.grant_queue('one_queue', 'seen', 'work');
select jobq.enforce_queue_grants();
set local session authorization one_queue;
select results_eq(
    format('select explanation from jobq.explain(%L) where reason = ''held_up''', :'sees'),
    format('values (''job_id %s, which was deleted or is not visible'')', :'ph'),
    'explain() does not tell of a parent that is hidden'
);
select jobq.redrive(:'pv');
select throws_ok(
    statement, '42501', 'adding a job requires the enqueue grant for its queue', 'has words for it: ' || statement
)
from unnest(array[
    'select jobq.enqueue(''k'', queue => ''hidden'')',
    'select jobq.open_batch(''{"kind": "k", "queue": "hidden"}'')'
]) as u (statement);
reset session authorization;
select jobq.complete(:'ph', 1);
select from jobq_private.resolve();
select is(pg_temp.state('anyhow'), 'blocked', 'a hidden child waits for a parent that is redriven');
select from jobq.claim_job(:'pv', 'w');
select jobq.complete(:'pv', 2);
select from jobq_private.resolve();
select is(pg_temp.state('anyhow'), 'queued', 'until that has ended');

select * from finish();
rollback;
