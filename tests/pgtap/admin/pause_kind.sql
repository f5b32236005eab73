-- What jobq.pause_kind(), jobq.resume_kind() and jobq.pause_queue('*') promise.
begin;
select plan(33);

create function pg_temp.echo(payload jsonb) returns jsonb language sql return payload;
select jobq.put_kind('called', run => pg_my_temp_schema()::regnamespace::text || '.echo');

-- A kind
select jobq.enqueue('paused') as running \gset
select from jobq.claim('{default}', 'w');
select jobq.pause_kind('paused', 'maintenance');
select jobq.enqueue('paused', priority => 9) as waiting \gset
select jobq.enqueue('paused', concurrency_key => 'a', queue => 'keys') as keyed \gset
select jobq.enqueue('other', concurrency_key => 'b', queue => 'keys') as beside \gset
select jobq.enqueue('other') as other \gset
select is(jobq.complete(:'running', 1), true, 'what runs goes on');
select results_eq(
    'select job_id from jobq.claim(''{default}'', ''w'', 9)', format('values (%L::uuid)', :'other'),
    'jobs of other kinds are claimed, those of a paused one are not'
);
select results_eq(
    'select job_id from jobq.claim(''{keys}'', ''w'', 9)', format('values (%L::uuid)', :'beside'),
    'also those with keys'
);
select is_empty(format('select from jobq.claim_job(%L, ''w'')', :'waiting'), 'nor by their ids');
select is(jobq.due_in('{default,keys}'), null, 'a worker may sleep');
select results_eq(
    format('select reason, explanation from jobq.explain(%L) limit 1', :'waiting'),
    format('values (''paused'', ''kind paused since %s: maintenance'')', date_trunc('second', now())),
    'explain() says why'
);
update jobq_private.paused_kind set paused_at = now() - interval '1 h';
select jobq.pause_kind('paused', 'still');
select jobq.pause_kind('paused');
select jobq.put_kind('paused', max_attempts => 9);
select results_eq(
    'select paused_at, pause_reason, max_attempts from jobq_internal.list_kinds() where kind = ''paused''',
    'values (now() - interval ''1 h'', ''still'', 9)',
    'pausing again changes the reason where one is given; a declaration does not end the pause'
);
update jobq_private.job set run_at = now() - interval '10 min' where job_id = :'waiting';
select ok(
    h.finding ~ 'paused: kind paused since .*: still', 'health() names a pause that lasts: ' || h.finding
)
from jobq.health(part => 'jobs') as h
where h.subject = 'waiting';
select jobq.resume_kind('paused');
select results_eq(
    'select job_id from jobq.claim(''{default,keys}'', ''w'', 9)',
    format('values (%L::uuid), (%L)', :'waiting', :'keyed'), 'a resumed kind is claimed'
);
select lives_ok('select jobq.resume_kind(''paused'')', 'resuming again changes nothing');

-- A function of the database
select jobq.enqueue('called') as called \gset
select jobq.pause_kind('called');
select is_empty('select from jobq_internal.claim_calls(''{default}'')', 'work() leaves a paused kind');
select jobq.resume_kind('called');
select isnt_empty('select from jobq_internal.claim_calls(''{default}'')', 'until it is resumed');

-- Everything
select jobq.enqueue('other', queue => 'q') as job \gset
select jobq.pause_queue('*', 'restored');
select jobq.enqueue('called') is not null as is_stored \gset
select is_empty(format('select from jobq.claim(%L, ''w'', 9)', q), 'no queue is claimed from: ' || q)
from (values ('{q}'), ('{default}'), ('{new}')) as v (q);
select is_empty('select from jobq_internal.claim_calls(''{default}'')', 'no function is called');
select is_empty(format('select from jobq.claim_job(%L, ''w'')', :'job'), 'no job is claimed by its id');
select is(jobq.due_in('{default,q}'), null, 'all workers may sleep');
select results_eq(
    format('select reason, explanation from jobq.explain(%L) limit 1', :'job'),
    format('values (''paused'', ''every queue since %s: restored'')', date_trunc('second', now())),
    'explain() says that everything is paused'
);
select is(
    (select bool_and(s.is_paused) from jobq.queue_stats() as s), true, 'each queue counts as paused'
);
select jobq.pause_queue('q');
select jobq.resume_queue('*');
select is_empty('select from jobq.claim(''{q}'', ''w'')', 'a queue that is paused itself stays paused');
select jobq.resume_queue('q');
select isnt_empty('select from jobq.claim(''{q}'', ''w'')', 'the others are claimed from again');
select results_eq(
    'select action, subject, reason from jobq.audit where action ~ ''pause|resume'' and subject = ''*''',
    $$ values ('pause_queue', '*', 'restored'), ('resume_queue', '*', null) $$, 'the audit records it'
);

select is(refusal(v.statement), v.refusal, v.statement || ': ' || v.refusal)
from (
    values
    ('select jobq.pause_kind(null)', '22004 NULL_ARGUMENT'),
    ('select jobq.pause_kind(''*'')', '22023 INVALID_ARGUMENT'),
    ('select jobq.pause_kind('''')', '22023 INVALID_ARGUMENT'),
    ('select jobq.pause_kind(''k'', repeat(''r'', 513))', '22023 INVALID_ARGUMENT'),
    ('select jobq.resume_kind(null)', '22004 NULL_ARGUMENT')
) as v (statement, refusal);

-- A tenant
create role pgtap_shop;
grant jobq_operator to pgtap_shop;
grant usage on schema tap to pgtap_shop;
select jobq.grant_queue('pgtap_shop', 'shop', 'work');
select jobq.put_kind('shop.mine', queue => 'shop');
select jobq.enforce_queue_grants();
select jobq.pause_kind('of all');
select jobq.pause_queue('*');
set session authorization pgtap_shop;
select array_agg(refusal(s) order by n) as refusals
from unnest(array[
    'select jobq.pause_kind(''other'')', 'select jobq.resume_kind(''of all'')',
    'select jobq.pause_queue(''aside'')', 'select jobq.resume_queue(''*'')',
    'select jobq.pause_kind(''shop.mine''), jobq.resume_kind(''shop.mine'')'
]) with ordinality as u (s, n) \gset
reset session authorization;
select is(r.refusal, c.refusal, c.claim)
from unnest(:'refusals'::text[]) with ordinality as r (refusal, n)
join (
    values
    (1, '42501 ALL_QUEUES_NEEDED', 'who has some queues may not pause a kind of all'),
    (2, '42501 ALL_QUEUES_NEEDED', 'nor resume one'),
    (3, '42501 QUEUE_DENIED', 'nor pause a queue of others'),
    (4, '42501 ALL_QUEUES_NEEDED', 'nor resume all queues'),
    (5, 'none', 'but a kind of its own')
) as c (n, refusal, claim) on c.n = r.n;

select * from finish();
rollback;
