-- What jobq.grant_queue(), revoke_queue() and enforce_queue_grants() promise within one
-- queue; tests/python/test_tenants.py has what they promise between queues.
begin;
select plan(77);

create function pg_temp.refusal(statement text)
returns text
language plpgsql
as $$
declare
    _code text;
begin
    execute statement;
    return 'none';
exception
    when others then
        get stacked diagnostics _code = constraint_name;
        return sqlstate || rtrim(' ' || _code);
end
$$;

create role adder;
create role doer;
create role stranger;
grant jobq_producer, jobq_worker, jobq_operator, jobq_reader to adder, doer, stranger;
grant usage on schema tap to adder, doer, stranger;
grant execute on all functions in schema tap to adder, doer, stranger;
select jobq.put_queue('q', max_depth => 100);
select jobq.put_kind('q.known', 'q');
select jobq.put_kind('bank.transfer', 'bank');
select jobq.enqueue('q.known', queue => 'q', run_at => now() + interval '1 day') as later \gset

select is(pg_temp.refusal(format('select jobq.%s(%s)', f.name, a.given)), a.refusal,
    format('%s(%s) is refused', f.name, a.given))
from (values ('grant_queue'), ('revoke_queue')) as f (name)
cross join (
    values
    ('null, ''q'', ''work''', '22004 NULL_ARGUMENT'),
    ('''adder'', null, ''work''', '22004 NULL_ARGUMENT'),
    ('''adder'', ''q'', null', '22004 NULL_ARGUMENT'),
    ('''nobody'', ''q'', ''work''', '22023 INVALID_ARGUMENT'),
    ('''adder'', '''', ''work''', '22023 INVALID_ARGUMENT'),
    ('''adder'', ''q'', ''all''', '22023 INVALID_ARGUMENT')
) as a (given, refusal);
select is(
    pg_temp.refusal('select jobq.enforce_queue_grants(null)'), '22004 NULL_ARGUMENT',
    'whether to enforce must be said'
);

select coalesce(max(audit_id), 0) as start from jobq.audit \gset
select jobq.grant_queue('adder', 'q', 'enqueue');
select jobq.grant_queue('adder', 'q', 'enqueue');
select jobq.grant_queue('doer', 'q', 'work');
select jobq.grant_queue('stranger', '*', 'work');
select jobq.revoke_queue('stranger', '*', 'work');
select jobq.revoke_queue('stranger', '*', 'work');
select results_eq(
    'select * from jobq.queue_grant order by 1',
    $$ values ('adder', 'q', 'enqueue'), ('doer', 'q', 'work') $$,
    'what is granted is listed, and what is revoked is not'
);
select results_eq(
    'select * from jobq_internal.list_queue_grants()',
    $$ values ('adder', 'q', 'enqueue'), ('doer', 'q', 'work') $$, 'by a function, too'
);
set session authorization doer;
select results_eq(
    'select * from jobq_internal.list_queue_grants()', $$ values ('doer', 'q', 'work') $$,
    'others see their own'
);
reset session authorization;
set session authorization stranger;
select lives_ok(
    'select jobq.enqueue(''x'', queue => ''q'')', 'grants mean nothing before they are enforced'
);
reset session authorization;
select jobq.enforce_queue_grants();
select results_eq(
    format('select action, subject, actor = session_user from jobq.audit
        where audit_id > %s order by audit_id', :start),
    $$ values ('grant_queue', 'adder enqueue q', true), ('grant_queue', 'doer work q', true),
    ('grant_queue', 'stranger work *', true), ('revoke_queue', 'stranger work *', true),
    ('enforce_queue_grants', 'on', true) $$,
    'each change is noted once'
);

set session authorization adder;
select jobq.enqueue('x', queue => 'q') as mine \gset
select jobq.enqueue('q.known', idempotency_key => 'k', dedup_key => 'd') as keyed \gset
select jobq.enqueue('q.known', dedup_key => 'd', dedup => 'replace') as second \gset
select is(
    pg_temp.refusal(format('select jobq.%s, array[%L::uuid], dry_run => %L)', v.call, :'mine', d.dry)),
    '42501 QUEUE_DENIED', format('who may only enqueue may not %s), dry run: %s', v.call, d.dry)
)
from (values ('change_many(''{"priority": 1}'''), ('change_many(''{"queue": "other"}''')) as v (call),
    (values (true), (false)) as d (dry);
select is(
    pg_temp.refusal(format('select jobq.delete_many(array[%L::uuid], dry_run => %L)', :'mine', d.dry)),
    '42501 QUEUE_DENIED', 'nor delete, dry run: ' || d.dry
)
from (values (true), (false)) as d (dry);
select is(
    (select j.state from jobq.get_job(:'keyed') as j), 'cancelled',
    'who may enqueue may replace'
);
select is(
    pg_temp.refusal('select from jobq.claim(''{q}'', ''w'')'), '42501',
    'who may only enqueue may not claim'
);
select is(jobq.cancel(:'later'), 'cancelled', 'who may enqueue may cancel');
select is(
    pg_temp.refusal(format('select jobq.redrive(%L)', :'later')), 'JQ002 ILLEGAL_STATE',
    'but not redrive'
);
select is(
    pg_temp.refusal('select jobq.pause_queue(''q'')'), '42501 QUEUE_DENIED', 'nor pause the queue'
);
select is(
    pg_temp.refusal('select jobq.put_kind(''q.new'', ''q'')'), '42501 ALL_QUEUES_NEEDED',
    'nor declare a kind'
);
select is(
    pg_temp.refusal('select jobq.enqueue(''x'', queue => ''q'', idempotency_key => ''k'')'),
    '42501', 'a key needs a kind that belongs to the queue'
);
select lives_ok(
    $$ select jobq.create_schedule(
        'graph', 'x', '@daily', queue => 'q', graph => '{"jobs": [
            {"name": "a", "kind": "x", "queue": "q"},
            {"name": "b", "kind": "q.known", "after": ["a"]}
        ]}'
    ) $$,
    'a schedule may have a graph in queues that one may add to'
);
select is(pg_temp.refusal(format(c.call, jsonb_build_object('jobs', jsonb_build_array(
        '{"name": "a", "kind": "x", "queue": "q"}'::jsonb,
        '{"name": "b"}'::jsonb || g.job
    )))), '42501 ENQUEUE_DENIED', format('not %s: %s', g.job, left(c.call, 25)))
from (
    values
    ('{"kind": "x", "queue": "bank"}'::jsonb), ('{"kind": "bank.transfer"}'),
    ('{"kind": "bank.transfer", "queue": "q"}'), ('{"kind": "x"}')
) as g (job),
(
    values
    ('select jobq.create_schedule(''evil'', ''x'', ''@daily'', queue => ''q'', graph => %L)'),
    ('select jobq.update_schedule(''graph'', jsonb_build_object(''graph'', %L::jsonb))')
) as c (call);
select is(
    pg_temp.refusal('select jobq.open_batch()'), '42501 ENQUEUE_DENIED',
    'nor a batch without a job of its own, which belongs to the default queue'
);
select is(
    pg_temp.refusal(format('select jobq.create_schedule(''s'', ''x'', %s)', g.given)),
    '42501 ENQUEUE_DENIED', 'nor a schedule: ' || g.given
)
from (
    values ('every => ''1 h'', queue => ''q'''), ('''@daily'', queue => ''bank'''), ('''@daily''')
) as g (given);
select jobq.create_schedule('plain', 'x', '@daily', queue => 'q');
reset session authorization;

-- A schedule fires with the rights of who has declared it, whoever calls tick()
update jobq_private.schedule set next_run_at = now() - interval '1 min';
select jobq.grant_queue('stranger', '*', 'work');
set session authorization stranger;
select is((select count(distinct schedule_id) from jobq_internal.tick()), 2::bigint, 'who works all queues fires for others');
reset session authorization;
select jobq.put_kind('q.known', 'bank');
update jobq_private.schedule set next_run_at = last_tick_at + interval '1 s';
set session authorization stranger;
select is((select count(distinct schedule_id) from jobq_internal.tick()), 1::bigint, 'but none whose kind belongs to others by now');
reset session authorization;
select matches(
    (select s.failure from jobq_private.schedule as s where s.name = 'graph'),
    'queue bank, kind q.known, log-in adder', 'and says so'
);
select jobq.put_kind('q.known', 'q');
select jobq.revoke_queue('stranger', '*', 'work');
select jobq.revoke_queue('adder', 'q', 'enqueue');
update jobq_private.schedule set next_run_at = coalesce(last_tick_at + interval '1 s', next_run_at), retry_at = null;
select is_empty('select from jobq_internal.tick()', 'nor where the grant is taken back');
select is(pg_temp.refusal(format(c.call, 'plain')), '42501 ENQUEUE_DENIED', format(c.call, 'it too'))
from (
    values ('select jobq.run_schedule(%L)'),
    ('select jobq.backfill_schedule(%L, now() - interval ''2 days'', now())')
) as c (call);
select jobq.grant_queue('adder', 'q', 'enqueue');
update jobq_private.schedule set retry_at = now();
select is((select count(distinct schedule_id) from jobq_internal.tick()), 2::bigint, 'which may be given again');
select is(pg_temp.refusal('select jobq.run_schedule(''plain'')'), 'none', 'and it runs by hand');
delete from jobq_private.job as j where j.slot_at is not null;

set session authorization doer;
select is(
    pg_temp.refusal('select jobq.enqueue(''x'', queue => ''q'')'), '42501 ENQUEUE_DENIED',
    'who may only work may not enqueue'
);
select is(
    pg_temp.refusal('select jobq.create_schedule(''s'', ''x'', ''@daily'', queue => ''q'')'),
    '42501 ENQUEUE_DENIED', 'nor have a schedule do so'
);
select results_eq(
    $$ select count(*) from jobq.claim('{q,other}', 'w', 10) $$, 'values (4::bigint)',
    'but claim'
);
reset session authorization;

set session authorization adder;
select is(jobq.cancel(:'mine'), 'cancel_requested', 'who may enqueue may ask to cancel');
select is(
    pg_temp.refusal(format('select jobq.complete(%L, 1)', :'second')), 'JQ003 LEASE_LOST',
    'who may only enqueue may not complete'
);
select is(
    pg_temp.refusal(format('select jobq.fail(%L, 1, ''x'')', :'second')), '42501', 'nor fail'
);
select is(
    pg_temp.refusal(format('select from jobq.release(%L, 1)', :'second')), '42501',
    'nor release'
);
reset session authorization;

set session authorization doer;
select ok(jobq.complete(:'second', 1), 'who may work may complete');
select is(pg_temp.refusal('select jobq.emit(''e'')'), '42501 ALL_QUEUES_NEEDED',
    'an event is for all queues');
select is(pg_temp.refusal('select jobq.' || d.call), d.refusal, 'not for some queues: ' || d.call)
from (
    values
    ('put_kind(''bank.transfer'', ''bank'')', '42501 ALL_QUEUES_NEEDED'),
    ('configure(max_attempts => 9)', '42501 ALL_QUEUES_NEEDED'),
    ('put_config(''c'', ''{}'')', '42501 ALL_QUEUES_NEEDED'),
    ('put_endpoint(''q.hook'', ''HTTP'', ''{"url": "http://a.example"}'')', '42501 ALL_QUEUES_NEEDED'),
    ('put_queue(''bank'')', '42501 QUEUE_DENIED'),
    ('put_limit(''bank'', ''k'', 1)', '42501 QUEUE_DENIED'),
    ('put_budget(''queue'', ''bank'', 1)', '42501 QUEUE_DENIED'),
    ('put_budget(''queue'', ''bank'', 1, concurrency_key => ''k'')', '42501 QUEUE_DENIED'),
    ('subscribe(''e'', ''bank.transfer'')', '42501 QUEUE_DENIED'),
    ('subscribe(''e'', ''q.known'', ''bank'')', '42501 QUEUE_DENIED')
) as d (call, refusal);
select lives_ok(format('select jobq.redrive(%L)', :'later'), 'and redrive');
select lives_ok('select jobq.pause_queue(''q'')', 'and pause');
reset session authorization;

select jobq.revoke_queue('doer', 'q', 'work');
set session authorization doer;
select is_empty('select from jobq.job', 'what is revoked is gone at once');
reset session authorization;
select jobq.enforce_queue_grants(false);
set session authorization doer;
select isnt_empty('select from jobq.job', 'what is no longer enforced does not hold');
reset session authorization;

-- Roles that are gone
reset role;
create role passing;
select jobq.grant_queue('passing', 'left', 'work');
drop role passing;
select matches(g.grantee, '^[0-9]+$', 'a role that was dropped is a number')
from jobq_internal.list_queue_grants() as g where g.queue = 'left';
select jobq.revoke_queue(g.grantee, 'left', 'work')
from jobq_internal.list_queue_grants() as g where g.queue = 'left';
select is_empty(
    $$ select from jobq_private.queue_grant where queue = 'left' $$,
    'by which its grants are taken back'
);

select * from finish();
rollback;
