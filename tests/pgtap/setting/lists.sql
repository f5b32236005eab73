-- Kinds, queues and workers as lists.
-- Needs more than the core.
begin;
select plan(11);

select is_empty('select * from jobq_internal.list_kinds()', 'no kind is declared at first');
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
    from jobq_internal.list_kinds()
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
select is_empty('select * from jobq_internal.list_queues()', 'no queue is declared at first');
select jobq.put_queue('q', priority => 3, max_depth => 9, key_max_running => 2);
select jobq.pause_queue('p', 'because');
select results_eq(
    $$
    select queue, priority, max_depth, key_max_running, paused_at is not null, pause_reason
    from jobq_internal.list_queues()
    $$,
    $$
    values ('p', null::integer, null::integer, null::integer, true, 'because'),
    ('q', 3, 9, 2, false, null)
    $$,
    'and of each queue, with its pause'
);
select jobq.put_queue(
    'all', max_running => 1, rate_limit => 2, rate_period => '3 s', rate_burst => 4,
    key_max_running => 5, key_rate_limit => 6, key_rate_period => '7 s', key_rate_burst => 8,
    ordered => true, on_dead => 'hold'
);
select is_empty(
    $$
    select from jsonb_each((
        select to_jsonb(q) - '{queue,budget,key_budget,paused_at,pause_reason,created_at,updated_at}'::text[]
        from jobq_private.queue as q where q.queue = 'all'
    )) as d (name, value)
    where not exists (
        select from jobq_internal.list_queues() as q
        where q.queue = 'all' and to_jsonb(q) -> d.name = d.value
    )
    $$,
    'whatever a queue says is in the list'
);
select is_empty('select * from jobq_internal.list_workers()', 'nobody works at first');
select jobq.heartbeat('w', '{}', '{}', '{q}', '{a}');
select results_eq(
    'select worker, queues, is_live, jobs, except_kinds, release from jobq_internal.list_workers()',
    $$ values ('w', '{q}'::text[], true, 0::bigint, '{a}'::text[], null::text) $$,
    'and each worker is told'
);

select jobq.put_kind(
    'c', concurrency_key => '{a}', ordered => true, on_dead => 'hold', key_max_running => 2,
    key_rate_limit => 3, key_rate_period => '4 s', key_rate_burst => 5, max_running => 6,
    rate_limit => 7, rate_period => '8 s', rate_burst => 9, dedup_period => '10 s',
    dedup_max_wait => '11 s', retry_strategy => 'fixed', retry_initial_delay => '12 s',
    retry_max_delay => '13 s', retry_jitter => 0.5, reuse_key_after_failure => true
);
select results_eq(
    $$
    select
        ordered, on_dead, key_max_running, key_rate_limit, key_rate_period, key_rate_burst,
        max_running, rate_limit, rate_period, rate_burst, dedup_period, dedup_max_wait,
        retry_strategy, retry_initial_delay, retry_max_delay, retry_jitter, reuse_key_after_failure
    from jobq_internal.list_kinds()
    where kind = 'c'
    $$,
    $$
    values (
        true, 'hold', 2, 3, '4 s'::interval, 5, 6, 7, '8 s'::interval, 9, '10 s'::interval,
        '11 s'::interval, 'fixed', '12 s'::interval, '13 s'::interval, 0.5::double precision, true
    )
    $$,
    'limits, order, retries and dedup of a kind as well'
);
select is(
    detail(format('select jobq.put_kind(''d'', %s)', v.said)), v.detail, v.said || ' is refused in words'
)
from (values
    ('retry_on => ''{x}''', 'retry_on must hold SQLSTATEs, or classes of two characters'),
    ('keep_dead => ''1 s''', 'keep_dead must be at least 1 hour'),
    ('on_dead => ''hold''', 'on_dead requires ordered')
) as v (said, detail);

select * from finish();
rollback;
