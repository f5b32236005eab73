-- What jobq.queue_stats() promises.
begin;
select plan(6);

select is_empty(
    'select * from jobq.queue_stats()', 'without queues and jobs there is no row'
);
select jobq.put_queue('empty');
select jobq.pause_queue('paused');
select jobq.enqueue('work', queue => 'q', run_at => now() - interval '90 s')
from generate_series(1, 5);
select jobq.enqueue('work', queue => 'q', run_at => now() + interval '1 h');
select from jobq.claim('{q}', 'w', 3);
create temporary table held as
select row_number() over () as n, j.job_id from jobq_private.job as j
where j.state = 'running';
select jobq.fail(job_id, 1, 'x', retry_in => '1 h') from held where n = 1;
select jobq.fail(job_id, 1, 'x', retryable => false) from held where n = 2;
select jobq.enqueue('child', queue => 'q', after => array(
    select j.job_id from jobq_private.job as j where j.state = 'running' limit 1
));
select jobq.enqueue('work', queue => 'over') as over \gset
select from jobq.claim('{over}', 'w');
select jobq.complete(:'over', 1);
select results_eq(
    'select * from jobq.queue_stats()',
    $$
    values ('empty', 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint,
        null::interval,
        0::bigint, false, 0::bigint, 0::bigint, true, 0::bigint),
    ('over', 0, 0, 0, 0, 0, null, 1, false, 0, 0, true, 0),
    ('paused', 0, 0, 0, 0, 0, null, 0, true, 0, 0, true, 0),
    ('q', 2, 1, 1, 1, 1, '90 s', 1, false, 0, 0, true, 1)
    $$,
    'each queue that has jobs, has just finished some or is declared has one row'
);
set local session_replication_role = replica;
update jobq_private.job_archive set finished_at = finished_at - interval '61 s';
set local session_replication_role = origin;
select results_eq(
    'select queue, dead, finished_last_minute from jobq.queue_stats()
    where dead + finished_last_minute > 0',
    $$ values ('q', 1::bigint, 0::bigint) $$,
    'the dead stay in sight; what finished longer than a minute ago does not'
);

select jobq.put_queue('keyed', key_max_running => 1);
select jobq.enqueue('work', queue => 'keyed', concurrency_key => (n % 2)::text)
from generate_series(1, 3) as n;
select results_eq(
    'select waiting_keys, closed_keys from jobq.queue_stats() where queue = ''keyed''',
    $$ values (2::bigint, 0::bigint) $$,
    'keys that no claim has met yet count'
);
select results_eq(
    $$ select value from jobq.metrics() where name = 'waiting_keys' and queue = 'keyed' $$,
    $$ values (2::double precision) $$,
    'and so in the metrics'
);
select from jobq.claim('{keyed}', 'w', 9);
select from jobq.claim('{keyed}', 'w', 9);
select results_eq(
    'select waiting_keys, closed_keys from jobq.queue_stats() where queue = ''keyed''',
    $$ values (1::bigint, 1::bigint) $$,
    'keys with work are counted, and those that may start no job now'
);

select * from finish();
rollback;
