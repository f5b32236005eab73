-- What jobq_http.show_totals() promises: counts of all queues, exact to an end.
begin;
select plan(9);

select is(
    (jobq_http.show_totals()::jsonb - 'oldest_runnable_ms')::text, jsonb_build_object(
        'queued', 0, 'scheduled', 0, 'retrying', 0, 'running', 0, 'blocked', 0, 'dead', 0,
        'queues', 0, 'paused', 0, 'goes_on', '[]'::jsonb
    )::text, 'at first there is nothing'
);

select jobq.enqueue('k', queue => 'a') from generate_series(1, 60);
select jobq.enqueue('k', queue => 'b', run_at => now() + interval '1 h')
from generate_series(1, 30);
select jobq.put_queue('keyed', key_max_running => 1);
select jobq.enqueue('k', queue => 'keyed', concurrency_key => n::text)
from generate_series(1, 3) as n;
select jobq.enqueue('k', queue => 'zz', max_attempts => 9) from generate_series(1, 4);
select jobq.fail(c.job_id, c.attempt, 'x', retryable => false)
from jobq.claim('{zz}', 'w', 2) as c;
select jobq.fail(c.job_id, c.attempt, 'x', retry_in => '1 h')
from jobq.claim('{zz}', 'w', 1) as c;
select from jobq.claim('{zz}', 'w', 1);
select jobq.pause_queue('still', 'a reason');
select jobq.enqueue('k', queue => 'still', after => array[j.job_id])
from jobq.job as j where j.queue = 'keyed' limit 1;

select is(
    (jobq_http.show_totals()::jsonb - 'oldest_runnable_ms')::text, jsonb_build_object(
        'queued', 63, 'scheduled', 30, 'retrying', 1, 'running', 1, 'blocked', 1, 'dead', 2,
        'queues', 5, 'paused', 1, 'goes_on', '[]'::jsonb
    )::text, 'all are counted'
);
select ok((jobq_http.show_totals() ->> 'oldest_runnable_ms')::bigint between 0 and 60000,
    'how long the oldest has waited is told');
select results_eq(
    $$ select (t.value ->> 'queued')::bigint, (t.value ->> 'scheduled')::bigint,
        t.value ->> 'goes_on'
    from jobq_http.show_totals(94) as t (value) $$,
    $$ values (63::bigint, 30::bigint, '[]') $$, 'as many as are looked at are exact'
);
select is(
    (jobq_http.show_totals(50) ->> 'queued') || (jobq_http.show_totals(50) ->> 'goes_on'),
    '50["queued", "scheduled", "retrying"]', 'of more it is said that they go on'
);
select is(
    (jobq_http.show_totals(1) ->> 'dead') || (jobq_http.show_totals(1) ->> 'goes_on'),
    '1["queued", "scheduled", "retrying", "dead", "queues"]', 'of the dead too'
);
select jobq_private.count_waiting();
insert into jobq_private.waiting_count (queue, queued, scheduled, retrying, counted_at, took)
values ('a', 60, 0, 7, now(), '0');
select is(
    (jobq_http.show_totals(20) ->> 'retrying'), '8',
    'of queues that are longer, what was counted last is told'
);
select throws_ok('select jobq_http.show_totals(0)', '22023', null, 'a count of none is refused');
select throws_ok('select jobq_http.show_totals(null)', '22004', null, 'and of null');

select * from finish();
rollback;
