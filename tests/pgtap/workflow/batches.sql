-- What open_batch(), seal_batch(), cancel_batch() and batch_status() promise.
begin;
select plan(48);

-- This transaction's own ends are looked at once more after the commit.
create view pg_temp.to_look_at as
select from jobq_private.pending where about <> 'parent' or due_at = '-infinity';

create function pg_temp.states(kinds text[])
returns text
language sql
as $$
select string_agg(j.kind || ' ' || j.state, ', ' order by j.kind collate "C")
from jobq.job as j
where j.kind = any(kinds)
$$;

-- Ends m of its members, n in all, with success or death, by an exchange.
create function pg_temp.ended(job_id uuid, is_success boolean)
returns void
language plpgsql
as $$
begin
    perform jobq.claim_job(ended.job_id, 'w');
    if is_success then
        perform jobq.complete(ended.job_id, 1);
    else
        perform jobq.fail(ended.job_id, 1, 'boom', retryable => false);
    end if;
    perform jobq_private.resolve();
end
$$;

-- All succeed
select jobq.open_batch('{"kind": "s"}', '{"kind": "e"}', '{"kind": "d"}') as batch \gset
select is(pg_temp.states('{s,e,d}'), 'd blocked, e blocked, s blocked',
    'the jobs at its end are blocked');
select is(
    (select j.metadata ->> 'batch_id' from jobq.job as j where j.kind = 's'), :'batch',
    'and know their batch'
);
select jobq.enqueue('m', batch_id => :'batch') as m1 \gset
select job_id as m2 from jobq.enqueue_many(format('[{"kind": "m", "batch_id": "%s"}]', :'batch')::jsonb)
\gset
select is((select j.batch_id::text from jobq.job as j where j.job_id = :'m1'), :'batch',
    'a member knows its batch');
select is(
    (select (b.members, b.queued, b.sealed_at is null)::text
    from jobq_internal.batch_status(:'batch') as b),
    '(2,2,t)', 'batch_status() counts members by state'
);
select matches(
    (select e.explanation from jobq.explain((
        select j.job_id from jobq.job as j where j.kind = 'e'
    )) as e),
    'waits for the end of batch .*: members live: 2, not sealed',
    'explain() says what the jobs at its end wait for'
);
select pg_temp.ended(:'m1', true);
select pg_temp.ended(:'m2', true);
select is(pg_temp.states('{s,e,d}'), 'd blocked, e blocked, s blocked',
    'a batch that is not sealed does not end');
select jobq.seal_batch(:'batch');
select from jobq_private.resolve();
select is(pg_temp.states('{s,e,d}'), 'd cancelled, e queued, s queued',
    'sealed, it ends: nobody has died');
select ok((select b.ended_at is not null from jobq_internal.batch_status(:'batch') as b),
    'batch_status() says so');
select is(refusal(format('select jobq.enqueue(''m'', batch_id => %L)', :'batch')),
    'JQ002 BATCH_ENDED', 'nobody joins a batch that has ended');
select jobq.seal_batch(:'batch');
select from jobq_private.resolve();
select is(pg_temp.states('{s,e,d}'), 'd cancelled, e queued, s queued',
    'sealing it again changes nothing');

-- One dies
select jobq.open_batch('{"kind": "s2"}', '{"kind": "e2"}', '{"kind": "d2"}') as batch \gset
select jobq.enqueue('m', batch_id => :'batch') as m1 \gset
select jobq.enqueue('m', batch_id => :'batch') as m2 \gset
select pg_temp.ended(:'m1', false);
select is(pg_temp.states('{s2,e2,d2}'), 'd2 queued, e2 blocked, s2 blocked',
    'the first death is told at once');
select pg_temp.ended(:'m2', true);
select jobq.seal_batch(:'batch');
select from jobq_private.resolve();
select is(pg_temp.states('{s2,e2,d2}'), 'd2 queued, e2 queued, s2 cancelled',
    'success is not, when one has died');
select is((select (b.members, b.succeeded, b.dead)::text from jobq_internal.batch_status(:'batch') as b),
    '(2,1,1)', 'and the figures tell');

-- Without members, and with none of the jobs
select jobq.open_batch('{"kind": "s3"}') as batch \gset
select jobq.seal_batch(:'batch');
select from jobq_private.resolve();
select is(pg_temp.states('{s3}'), 's3 queued', 'a batch without members ends when it is sealed');
select jobq.open_batch() as batch \gset
select is((select b.members from jobq_internal.batch_status(:'batch') as b), 0::bigint,
    'a batch may just be counted');

-- Members that add members, and members that wait
select jobq.open_batch(null, '{"kind": "e4"}') as batch \gset
select jobq.enqueue('m', batch_id => :'batch') as m1 \gset
select jobq.seal_batch(:'batch');
select jobq.enqueue('m', batch_id => :'batch', after => array[:'m1']::uuid[]) as m2 \gset
select pg_temp.ended(:'m1', true);
select is(pg_temp.states('{e4}'), 'e4 blocked', 'a sealed batch goes on while a member lives');
select pg_temp.ended(:'m2', true);
select is(pg_temp.states('{e4}'), 'e4 queued', 'and ends with the last one');

-- A dead member that is redriven before the end
select jobq.open_batch('{"kind": "s5"}') as batch \gset
select jobq.enqueue('m', batch_id => :'batch') as m1 \gset
select from jobq.claim_job(:'m1', 'w');
select from jobq.fail(:'m1', 1, 'boom', retryable => false);
select jobq.redrive(:'m1');
select jobq.seal_batch(:'batch');
select from jobq_private.resolve();
select is(pg_temp.states('{s5}'), 's5 blocked', 'a member that was redriven is awaited');
select from jobq.claim_job(:'m1', 'w');
select from jobq.complete(:'m1', 2);
select from jobq_private.resolve();
select is(pg_temp.states('{s5}'), 's5 queued', 'and its success counts');

-- Cancelled as a whole
select jobq.open_batch('{"kind": "s6"}', '{"kind": "e6"}') as batch \gset
select from jobq.enqueue_many((
    select jsonb_agg(jsonb_build_object('kind', 'm', 'batch_id', :'batch'))
    from generate_series(1, 5)
));
select jobq.enqueue('runs', batch_id => :'batch', priority => 9) as runs \gset
select from jobq.claim_job(:'runs', 'w');
select is(
    (select c::text from jobq.cancel_batch(:'batch', 'wrong', 3) as c), '(3,0,3)',
    'a batch is cancelled by so many at a time'
);
select is(
    (select c::text from jobq.cancel_batch(:'batch', 'wrong') as c), '(2,1,0)',
    'what runs is asked to stop'
);
select is((select j.state from jobq.job as j where j.job_id = :'runs'), 'running',
    'and runs until its worker sees that');
select jobq.confirm_cancel(:'runs', 1);
select from jobq_private.resolve();
select is(pg_temp.states('{e6,s6}'), 'e6 queued, s6 cancelled', 'then the batch has ended');
select is_empty('select from pg_temp.to_look_at', 'nothing is left to look at');

-- A member that is deleted
select jobq.open_batch('{"kind": "s7"}') as batch \gset
select jobq.enqueue('m', batch_id => :'batch') as m1 \gset
select jobq.seal_batch(:'batch');
select from jobq.delete_many(array[:'m1']::uuid[]);
select from jobq_private.resolve();
select is(pg_temp.states('{s7}'), 's7 cancelled',
    'a member that is deleted holds nobody up, and has not succeeded');
select jobq.open_batch('{"kind": "s9"}', '{"kind": "e9"}') as batch \gset
select jobq.enqueue('m', batch_id => :'batch') as m1 \gset
select jobq.enqueue('m', batch_id => :'batch') as m2 \gset
select pg_temp.ended(:'m1', false);
select pg_temp.ended(:'m2', true);
select from jobq.delete_many(array[:'m1', :'m2']::uuid[]);
select jobq.seal_batch(:'batch');
select from jobq_private.resolve();
select is(pg_temp.states('{s9,e9}'), 'e9 queued, s9 cancelled',
    'nor has a dead one that is deleted before the end');
select jobq.open_batch('{"kind": "s10"}') as batch \gset
select jobq.enqueue('m', batch_id => :'batch') as m1 \gset
select pg_temp.ended(:'m1', true);
select from jobq.delete_many(array[:'m1']::uuid[]);
select jobq.seal_batch(:'batch');
select from jobq_private.resolve();
select is(pg_temp.states('{s10}'), 's10 queued', 'one that had succeeded has');

-- A job at the end of a batch that is cancelled, and redriven
select jobq.open_batch('{"kind": "s11"}', '{"kind": "e11"}') as batch \gset
select on_success as s11, on_end as e11 from jobq_internal.batch_status(:'batch') \gset
select jobq.enqueue('m', batch_id => :'batch') as m1 \gset
select jobq.cancel(j) from unnest(array[:'s11', :'e11']::uuid[]) as j;
select jobq.redrive(:'s11');
update jobq.job as j set state = 'queued' where j.job_id = :'e11';
select from jobq_private.resolve();
select is(pg_temp.states('{s11,e11}'), 'e11 blocked, s11 blocked',
    'waits again while members live, whoever redrives it');
select is(
    (select count(*) from jobq.audit as a
    where a.action = 'redrive' and a.subject in (:'s11', :'e11')), 2::bigint,
    'which is noted'
);
select pg_temp.ended(:'m1', true);
select jobq.seal_batch(:'batch');
select from jobq_private.resolve();
select is(pg_temp.states('{s11,e11}'), 'e11 queued, s11 queued', 'and is called at the end');
select jobq.cancel(:'s11');
select jobq.redrive(:'s11');
select from jobq_private.resolve();
select is(pg_temp.states('{s11}'), 's11 queued', 'once more, after the end too');

-- Its condition is looked at anew
select jobq.open_batch('{"kind": "s12"}', null, '{"kind": "d12"}') as batch \gset
select on_success as s12, on_first_death as d12 from jobq_internal.batch_status(:'batch') \gset
select jobq.enqueue('m', batch_id => :'batch') as m1 \gset
select jobq.seal_batch(:'batch');
select pg_temp.ended(:'m1', false);
select from jobq_private.resolve();
select jobq.redrive(:'s12');
select from jobq_private.resolve();
select is(pg_temp.states('{s12,d12}'), 'd12 queued, s12 cancelled',
    'on_success is cancelled again while a member is dead');
select jobq.redrive(:'m1');
select jobq.redrive(:'s12');
select from jobq_private.resolve();
select is(pg_temp.states('{s12}'), 's12 blocked', 'waits for members that were redriven');
select from jobq.claim_job(:'m1', 'w');
select jobq.complete(:'m1', 2);
select from jobq_private.resolve();
select is(
    pg_temp.states('{s12}') || (select b.ended_at is not null from jobq_internal.batch_status(:'batch') as b),
    's12 queuedtrue', 'and runs when they have succeeded'
);
select jobq.open_batch(on_first_death => '{"kind": "d13"}') as batch \gset
select on_first_death as d13 from jobq_internal.batch_status(:'batch') \gset
select jobq.enqueue('m', batch_id => :'batch') as m1 \gset
select jobq.seal_batch(:'batch');
select pg_temp.ended(:'m1', true);
select jobq.redrive(:'d13');
select from jobq_private.resolve();
select is(pg_temp.states('{d13}'), 'd13 cancelled', 'on_first_death while none is');
select matches(
    (select e.explanation from jobq.explain(:'d13') as e), ': no job of batch [-0-9a-f]{36} is dead$',
    'and explain() says why'
);

-- A member that waits for the end of its own batch
select jobq.open_batch('{"kind": "s8"}') as batch \gset
select on_success as s8 from jobq_internal.batch_status(:'batch') \gset
select jobq.enqueue('m', batch_id => :'batch', after => array[:'s8']::uuid[]) as m1 \gset
select jobq.seal_batch(:'batch');
select alike(
    (select x.explanation from jobq.explain(:'m1') as x where x.reason = 'held_up'),
    '%, s8: blocked, waits for the end of batch ' || :'batch' || ': members live: 1%',
    'explain() shows that a member waits for its own batch'
);

-- What is refused
select is(refusal('select jobq.enqueue(''m'', batch_id => gen_random_uuid())'),
    'JQ001 BATCH_NOT_FOUND', 'a batch that is not there is refused');
select is(refusal('select jobq.seal_batch(gen_random_uuid())'),
    'JQ001 BATCH_NOT_FOUND', 'at seal_batch()');
select is(refusal('select jobq_internal.batch_status(null)'), '22004 NULL_ARGUMENT', 'and null');
select is(refusal('select jobq.cancel_batch(gen_random_uuid())'),
    'JQ001 BATCH_NOT_FOUND', 'at cancel_batch()');
select is(refusal(format('select jobq.cancel_batch(%L, max_jobs => 0)', :'batch')),
    '22023 INVALID_ARGUMENT', 'at least one at a time');
select is(refusal($$select jobq.open_batch('{"kind": "k", "dedup_key": "d"}')$$),
    '22023 INVALID_ARGUMENT', 'jobs at the end of a batch have no keys');
select is(refusal($$select jobq.open_batch('{"kind": ""}')$$),
    '22023 INVALID_ARGUMENT', 'and are checked as all others');
select is(refusal($$select jobq.open_batch('[]')$$),
    '22023 INVALID_ARGUMENT', 'each is an object');

-- With a kind whose payloads have dedup keys
select jobq.put_kind('once', dedup_key => '{id}');
select jobq.enqueue('once', '{"id": 1}');
select jobq.open_batch('{"kind": "once", "payload": {"id": 1}}') as batch \gset
select is(
    (select j.state collate "default" from jobq_private.batch as b
    join jobq.job as j on j.job_id = b.on_success where b.batch_id = :'batch'),
    'blocked', 'no live job with the same dedup key takes the place of a job at the end'
);

-- Under grants by queue, by who does not see every member
create role one_queue login;
grant jobq_worker to one_queue;
select jobq.grant_queue('one_queue', 'seen', 'work');
select jobq.open_batch('{"kind": "s9", "queue": "seen"}') as batch \gset
select jobq.enqueue('m', queue => 'hidden', batch_id => :'batch') as m1 \gset
select jobq.seal_batch(:'batch');
select jobq.enforce_queue_grants();
set local session authorization one_queue;
select is_empty(
    $$select kind from jobq.claim('{seen}', 'w', 10)$$,
    'a batch is not ended by a log-in that does not see its members'
);
reset session authorization;
select jobq.cancel(:'m1');
select results_eq(
    $$select kind collate "default" from jobq.claim('{seen}', 'w', 10)$$, '{}'::text[],
    'but by who works all queues, and truly'
);

select * from finish();
rollback;
