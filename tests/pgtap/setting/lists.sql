-- Kinds, queues and workers as lists.
begin;
select plan(6);

select is_empty('select * from jobq.list_kinds()', 'no kind is declared at first');
select jobq.put_kind(
    'b', queue => 'q', priority => 3, max_attempts => 7, timeout => '3 s', lease => '4 s',
    retry_preset => 'delivery', dedup => 'replace', keep_succeeded => '0',
    payload_schema => '{"type": "object"}', concurrency_key => '{a,b}', retry_on => '{40,P0001}'
);
select jobq.put_kind('a');
select results_eq(
    $$
    select
        kind, queue, priority, max_attempts, timeout, lease, retry_preset, dedup, concurrency_key,
        keep_succeeded, keep_dead, keep_cancelled, run, retry_on, is_endpoint, payload_schema
    from jobq.list_kinds()
    $$,
    $$
    values
    ('a', null, null::integer, null::integer, null::interval, null::interval, null, null,
        null::text[], null::interval, null::interval, null::interval, null::text, null::text[],
        false, null::jsonb),
    ('b', 'q', 3, 7, '3 s', '4 s', 'delivery', 'replace', '{a,b}', '0', null, null, null, '{40,P0001}', false,
        '{"type": "object"}')
    $$,
    'what is declared of each is told'
);
select is_empty('select * from jobq.list_queues()', 'no queue is declared at first');
select jobq.put_queue('q', priority => 3, max_depth => 9, key_max_running => 2);
select jobq.pause_queue('p', 'because');
select results_eq(
    $$
    select queue, priority, max_depth, key_max_running, paused_at is not null, pause_reason
    from jobq.list_queues()
    $$,
    $$
    values ('p', null::integer, null::integer, null::integer, true, 'because'),
    ('q', 3, 9, 2, false, null)
    $$,
    'and of each queue, with its pause'
);
select is_empty('select * from jobq.list_workers()', 'nobody works at first');
select jobq.heartbeat('w', '{}', '{}', '{q}', '{a}');
select results_eq(
    'select worker, queues, is_live, jobs, except_kinds, release from jobq.list_workers()',
    $$ values ('w', '{q}'::text[], true, 0::bigint, '{a}'::text[], null::text) $$,
    'and each worker is told'
);

select * from finish();
rollback;
