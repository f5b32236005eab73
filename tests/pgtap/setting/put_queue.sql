-- What jobq.put_queue() promises; settings.sql shows what its settings do.
begin;
select plan(19);

select lives_ok(
    'select jobq.put_queue(''plain'')', 'a queue may be declared with nothing else'
);
select jobq.put_queue('full', 1, 2, '3 s', '4 s', 'delivery', 5);
select results_eq(
    $$
    select priority::integer, max_attempts, timeout, lease, retry_preset, max_depth,
        paused_at
    from jobq_private.queue where queue = 'full'
    $$,
    $$
    values (1, 2, interval '3 s', interval '4 s', 'delivery', 5, null::timestamptz)
    $$,
    'or with everything'
);
update jobq_private.queue set paused_at = now(), pause_reason = 'maintenance' where queue = 'full';
select jobq.put_queue('full', max_depth => 6);
select results_eq(
    'select max_attempts, max_depth, paused_at, pause_reason from jobq_private.queue
    where queue = ''full''',
    $$ values (null::integer, 6, now(), 'maintenance') $$,
    'declaring again replaces everything but a pause'
);
select is(
    refusal('select jobq.put_queue(' || a.arguments || ')'), a.refusal,
    format('put_queue(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('null', '22004 NULL_ARGUMENT'),
    ('''''', '22023 INVALID_ARGUMENT'),
    ('repeat(''q'', 128)', 'none'),
    ('repeat(''q'', 129)', '22023 INVALID_ARGUMENT'), ('''*''', '22023 INVALID_ARGUMENT'),
    ('''tenant-*''', '22023 INVALID_ARGUMENT'), ('''a*b''', 'none'),
    ('''q'', priority => -32769', '22023 INVALID_ARGUMENT'),
    ('''q'', max_attempts => 0', '22023 INVALID_ARGUMENT'),
    ('''q'', timeout => ''-1 s''', '22023 INVALID_ARGUMENT'),
    ('''q'', timeout => ''366 days''', '22023 INVALID_ARGUMENT'),
    ('''q'', lease => ''0''', '22023 INVALID_ARGUMENT'),
    ('''q'', lease => ''25 h''', '22023 INVALID_ARGUMENT'),
    ('''q'', retry_preset => ''never''', '22023 INVALID_ARGUMENT'),
    ('''q'', max_depth => 0', '22023 INVALID_ARGUMENT'),
    ('''q'', max_depth => 1', 'none')
) as a (arguments, refusal);

select * from finish();
rollback;
