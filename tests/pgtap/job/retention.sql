-- How long finished jobs are kept, by kind and outcome; none at all where that is 0.
-- Needs more than the core.
begin;
select plan(24);

select jobq.put_kind('traceless', keep_succeeded => '0', max_attempts => 5);
select jobq.put_kind(
    'short', keep_succeeded => '1 h', keep_dead => '2 h', keep_cancelled => '3 h'
);
select is(
    array[
        jobq.settings('traceless') ->> 'keep_succeeded', jobq.settings('traceless') ->> 'keep_dead',
        jobq.settings('short') ->> 'keep_cancelled', jobq.settings() ->> 'keep_succeeded'
    ],
    '{00:00:00,"30 days",03:00:00,"30 days"}', 'settings() says how long'
);
select throws_ok(
    format('select jobq.put_kind(''k'', %s)', a.argument), '22023', null,
    a.argument || ' is refused'
)
from (
    values
    ('keep_succeeded => ''-1 s'''), ('keep_dead => ''59 min'''), ('keep_cancelled => ''0'''),
    ('keep_dead => ''31 days'''), ('keep_succeeded => ''31 days''')
) as a (argument);
select is(
    (select count(*)::integer from jobq_private.kind where kind = 'k'), 0,
    'and nothing is declared'
);

-- No trace
select jobq.enqueue('traceless', idempotency_key => 'once') as gone \gset
select jobq.enqueue('plain') as plain \gset
select from jobq.claim('{default}', 'w', 10);
select jobq.log(:'gone', 1, 'INFO', 'a line');
select jobq.save_step(:'gone', 1, 'a step', '1');
select jobq.fail(:'gone', 1, 'broken', retry_in => '0');
select from jobq.claim_job(:'gone', 'w');
select is(
    (select c.outcome from jobq.complete_many(array[:'gone', :'gone']::uuid[], '{2,1}') as c
    order by c.attempt desc limit 1),
    'succeeded', 'an attempt of a job without a trace succeeds'
);
select throws_ok(
    format('select jobq.get_job(%L)', :'gone'), 'JQ001', null, 'and then there is no job'
);
select is(
    (select count(*)::integer from jobq_private.attempt where job_id = :'gone')
    + (select count(*)::integer from jobq_private.job_log where job_id = :'gone')
    + (select count(*)::integer from jobq_private.step where job_id = :'gone'),
    0, 'nor its failed attempts, log and steps'
);
select is(
    jobq.enqueue('traceless', idempotency_key => 'once'), :'gone'::uuid,
    'its idempotency key is remembered all the same'
);
select throws_ok(
    format('select jobq.complete(%L, 2)', :'gone'), 'JQ001', null,
    'a repeated completion finds no job'
);

-- In a batch with others, and with an attempt that has lost its job
select jobq.enqueue('traceless') as another \gset
select from jobq.claim('{default}', 'w', 10);
select results_eq(
    format(
        $$ select outcome, job_id from jobq.exchange('{default}', 'w', 0, array[%L, %L, %L]::uuid[], '{1,1,1}') $$,
        :'plain', :'another', :'gone'
    ),
    format($$ values ('lost', %L::uuid) $$, :'gone'),
    'in a batch only what is lost comes back'
);
select is(
    array(select job_id from jobq_private.job_archive), array[:'plain'::uuid],
    'and only what leaves a trace is archived'
);
select jobq.enqueue('traceless', max_attempts => 1) as fails \gset
select from jobq.claim_job(:'fails', 'w');
select is(jobq.fail(:'fails', 1, 'broken'), 'dead', 'a job that leaves no trace can fail');
select is((jobq.get_job(:'fails')).state::text, 'dead', 'and is kept then');

-- In a batch with jobs that leave one
create function pg_temp.ended()
returns table (name text, outcome text, is_archived boolean, is_live boolean, traces bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    _queue constant text := 'mixed';
    _parent constant uuid := jobq.enqueue('traceless', '{"name": "awaited"}', _queue);
    _failed constant uuid := jobq.enqueue('traceless', '{"name": "failed"}', _queue);
begin
    perform jobq.enqueue('short', queue => 'later', after => array[_parent]);
    perform jobq.enqueue('plain', '{"name": "plain"}', _queue);
    perform jobq.enqueue('traceless', '{"name": "stale"}', _queue);
    perform jobq.enqueue('traceless', '{"name": "keyed"}', _queue, concurrency_key => 'k');
    perform jobq.enqueue(
        'traceless', '{"name": "member"}', _queue,
        batch_id => jobq.open_batch(on_end => '{"kind": "short", "queue": "later"}')
    );
    perform jobq.claim_job(_failed, 'w');
    perform jobq.fail(_failed, 1, 'broken', retry_in => '0');
    create temporary table held as
    select c.job_id, c.attempt, c.payload ->> 'name' as name
    from jobq.claim(array[_queue], 'w', 10) as c;
    perform jobq.log(h.job_id, h.attempt, 'INFO', 'a line') from held as h;
    update held as h set attempt = 9 where h.name = 'stale';

    create temporary table settled as
    select x.job_id, x.outcome
    from (
        select array_agg(h.job_id) as ids, array_agg(h.attempt) as attempts from held as h
    ) as h
    cross join lateral jobq.exchange(array[_queue], 'w', 0, h.ids, h.attempts) as x;
    return query
    select
        h.name, s.outcome,
        exists (select from jobq_private.job_archive as a where a.job_id = h.job_id),
        exists (select from jobq_private.job as j where j.job_id = h.job_id),
        (select count(*) from jobq_private.job_log as l where l.job_id = h.job_id)
        + (select count(*) from jobq_private.attempt as a where a.job_id = h.job_id)
    from held as h
    left join settled as s on s.job_id = h.job_id
    order by h.name;
    drop table held, settled;
end
$$;
select results_eq(
    'select * from pg_temp.ended()',
    $$
    values ('awaited', null, true, false, 1::bigint), ('failed', null, false, false, 0),
    ('keyed', null, false, false, 0), ('member', null, true, false, 1),
    ('plain', null, true, false, 1), ('stale', 'lost', false, true, 1)
    $$,
    'in a batch each job is kept as its kind says'
);

-- For a while
select jobq.enqueue('short') as succeeded \gset
select jobq.enqueue('short', max_attempts => 1) as dead \gset
select jobq.enqueue('short') as cancelled \gset
select from jobq.claim_job(:'succeeded', 'w');
select from jobq.claim_job(:'dead', 'w');
select jobq.complete(:'succeeded', 1);
select jobq.fail(:'dead', 1, 'broken');
select jobq.cancel(:'cancelled');
select results_eq(
    $$ select state, prune_at - finished_at from jobq_private.job_archive where kind = 'short' order by 2 $$,
    $$
    values ('succeeded' collate "C", interval '1 h'), ('dead', interval '2 h'),
    ('cancelled', interval '3 h')
    $$,
    'each outcome has its own time'
);
set local session_replication_role = replica;
update jobq_private.job_archive set prune_at = now() - interval '1 s'
where job_id in (:'succeeded', :'plain');
set local session_replication_role = origin;
select is(jobq_private.prune_jobs(1), 1::bigint, 'what is past it is forgotten, bounded');
select is(jobq_private.prune_jobs(10), 1::bigint, 'until nothing is left');
select is(
    array(select state::text from jobq_private.job_archive where kind = 'short' order by 1),
    '{cancelled,dead}', 'and nothing else'
);

select jobq.redrive(:'dead');
select from jobq.claim_job(:'dead', 'w');
select jobq.complete(:'dead', 2);
select is(
    (select prune_at - finished_at from jobq_private.job_archive where job_id = :'dead'),
    interval '1 h', 'a job that is redriven is kept as its new outcome says'
);

-- The idempotency keys of jobs that are forgotten before the end of the keys' retention
select jobq.put_kind(k, reuse_key_after_failure => k = 'again', keep_cancelled => '3 h')
from unnest('{again,once}'::text[]) as k;
select jobq.enqueue('again', idempotency_key => 'key') as again \gset
select jobq.enqueue('once', idempotency_key => 'key') as once \gset
select jobq.cancel(j) from unnest(array[:'again', :'once']::uuid[]) as j;
set local session_replication_role = replica;
update jobq_private.job_archive set prune_at = now() - interval '1 s'
where job_id in (:'again', :'once');
set local session_replication_role = origin;
select jobq_private.prune_jobs(10);
select ok(
    (select created from jobq.enqueue_many('[{"kind": "again", "idempotency_key": "key"}]')),
    'a key that can be used again after a failure stays free when the job is forgotten'
);
select is(
    jobq.enqueue('once', idempotency_key => 'key'), :'once',
    'any other is kept for its own retention'
);

select * from finish();
rollback;
