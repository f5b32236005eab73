-- What jobq.pause_queue() promises; claim.sql and explain.sql show its effect.
begin;
select plan(14);

select jobq.enqueue('work', queue => 'q') as running \gset
select from jobq.claim('{q}', 'w');
select jobq.pause_queue('q', 'maintenance');
select results_eq(
    'select paused_at, pause_reason, max_attempts from jobq_private.queue
    where queue = ''q''',
    $$ values (now(), 'maintenance', null::integer) $$,
    'a queue that nobody has declared can be paused'
);
select lives_ok('select jobq.enqueue(''work'', queue => ''q'')', 'enqueueing goes on');
select is(jobq.complete(:'running', 1), true, 'and so does what runs');
select is_empty('select jobq.claim(''{q}'', ''w'', 9)', 'but nothing is claimed');
update jobq_private.queue set paused_at = now() - interval '1 h' where queue = 'q';
select jobq.pause_queue('q', 'still');
select jobq.pause_queue('q');
select results_eq(
    'select paused_at, pause_reason from jobq_private.queue where queue = ''q''',
    $$ values (now() - interval '1 h', 'still') $$,
    'pausing again changes the reason where one is given, not since when'
);
select jobq.put_queue('declared', max_attempts => 9);
select jobq.pause_queue('declared');
select is(
    jobq.settings(null, 'declared') ->> 'max_attempts', '9',
    'a pause keeps what was declared'
);
select is(
    refusal('select jobq.pause_queue(' || a.arguments || ')'), a.refusal,
    format('pause_queue(%s): %s', a.arguments, a.refusal)
)
from (
    values ('null', '22004 NULL_ARGUMENT'), ('''''', '22023 INVALID_ARGUMENT'),
    ('''tenant-*''', '22023 INVALID_ARGUMENT'), ('repeat(''q'', 129)', '22023 INVALID_ARGUMENT'), ('repeat(''q'', 128)', 'none'),
    ('''q'', repeat(''r'', 512)', 'none'), ('''q'', repeat(''r'', 513)', '22023 INVALID_ARGUMENT'),
    ('''*'', repeat(''r'', 513)', '22023 INVALID_ARGUMENT')
) as a (arguments, refusal);

select * from finish();
rollback;
