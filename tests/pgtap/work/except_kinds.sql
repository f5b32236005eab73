-- A worker leaves kinds that it has no handler for to others, and everybody can see which.
-- Needs more than the core.
begin;
select plan(20);

select jobq.enqueue('new', priority => 9) as new \gset
select jobq.enqueue('old') as old \gset
select results_eq(
    $$ select kind from jobq.claim('{default}', 'older', 10, except_kinds => '{new,newer}') $$,
    $$ values ('old') $$, 'claim() passes over what the worker does not know'
);
select is_empty(
    $$ select from jobq.claim('{default}', 'older', 10, except_kinds => '{new}') $$, 'however often it asks'
);
select is(
    jobq.due_in('{default}', '{new}'), null, 'and does not keep the worker from sleeping'
);
select ok(jobq.due_in('{default}') <= '0', 'which it would without');
select is(jobq_private.next_due('{default}', '{new}'), null, 'the same by next_due()');
select throws_ok(
    format('select from jobq.claim(''{default}'', ''w'', 1, except_kinds => %L)', a.kinds), a.sqlstate, null,
    a.kinds || ' is refused'
)
from (values ('{null}', '22004'), ('{{a},{b}}', '22023')) as a (kinds, sqlstate);

select jobq.enqueue('new', queue => 'keyed', concurrency_key => 'a') as keyed \gset
select is_empty(
    $$ select from jobq.claim('{keyed}', 'older', 10, except_kinds => '{new}') $$,
    'a job with a key is passed over as well'
);
select is(
    jobq.due_in('{keyed}', '{new}'), null, 'and does not keep the worker from sleeping either'
);
select ok(jobq.due_in('{keyed}') <= '0', 'which it would without');
select is(
    (select count(*) from jobq.claim('{keyed}', 'newer', 10)), 1::bigint,
    'and there at once for who knows its kind'
);

select jobq.heartbeat('older', '{}', '{}', '{default}', '{new}');
select is(
    (select w.except_kinds from jobq.worker as w where w.worker = 'older'), '{new}',
    'a heartbeat tells what the worker does not know'
);
select jobq.heartbeat('older', '{}', '{}');
select results_eq(
    format('select reason from jobq.explain(%L)', :'new'),
    $$ values ('unknown_kind'), ('waiting') $$, 'explain() says that no worker knows the kind'
);
select is(
    (select h.finding from jobq.health() as h where h.subject = 'kinds' and not h.is_ok),
    'no live worker has a handler for new in queue default', 'and so does health()'
);
select jobq.heartbeat('newer', '{}', '{}', '{default}', '{}');
select results_eq(
    format('select reason from jobq.explain(%L)', :'new'),
    $$ values ('waiting') $$, 'until one comes that knows it'
);
select ok(
    (select h.is_ok from jobq.health() as h where h.subject = 'kinds'), 'then all is well'
);
select jobq.heartbeat('newer', '{}', '{}', '{elsewhere}');
select results_eq(
    format('select reason from jobq.explain(%L)', :'new'),
    $$ values ('unknown_kind'), ('waiting') $$, 'one that serves another queue is no help'
);
select jobq.change_many(
    jsonb_build_object('run_at', now() + interval '1 h'), array[:'new'::uuid]
);
select ok(
    (select h.is_ok from jobq.health() as h where h.subject = 'kinds'),
    'health() names only what is due'
);
select jobq.change_many('{"run_at": "now"}', array[:'new'::uuid]);
select results_eq(
    $$
    select kind from jobq.exchange('{default}', 'newer', 10, except_kinds => '{old}')
    $$,
    $$ values ('new') $$, 'exchange() passes over kinds too'
);
select throws_ok(
    $$ select jobq.heartbeat('w', '{}', '{}', null, '{null}') $$, '22004', null,
    'a heartbeat refuses what is no kind'
);

select * from finish();
rollback;
