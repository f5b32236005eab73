-- What jobq_http.show_queues() promises: the figures of queue_stats(), up to an end.
begin;
select plan(12);

select is(jobq_http.show_queues()::text, '[]', 'at first there is none');

select jobq.put_queue('keyed', key_max_running => 1);
select jobq.enqueue('k', queue => 'keyed', concurrency_key => n::text)
from generate_series(1, 3) as n;
select jobq.enqueue('k', queue => 'plain', priority => n % 3) from generate_series(1, 5) as n;
select jobq.enqueue('k', queue => 'plain', run_at => now() + interval '1 h');
select from jobq.claim('{plain}', 'w', 2);
select jobq.fail(j.job_id, 1, 'x', retryable => false)
from (select job_id from jobq.job where state = 'running' limit 1) as j;
select jobq.fail(j.job_id, 1, 'x', retry_in => '1 h')
from (select job_id from jobq.job where state = 'running' limit 1) as j;
select from jobq.claim('{plain}', 'w', 1);
select jobq.pause_queue('still', 'a reason');
select jobq.heartbeat('w', '{}', '{}', '{plain,empty}');

create temporary table shown as
select s.* from json_to_recordset(jobq_http.show_queues()) as s (
    queue text, queued bigint, scheduled bigint, retrying bigint, running bigint,
    dead bigint, oldest_runnable_ms bigint, is_paused boolean, pause_reason text,
    is_served boolean
);

select results_eq(
    'select queue, queued, scheduled, retrying, running, dead from shown
    where queue in (select queue from jobq.queue_stats()) order by queue',
    'select queue, queued, scheduled, retrying, running, dead from jobq.queue_stats()
    order by queue',
    'counts are those of queue_stats()'
);
select is((select queued from shown where queue = 'plain'), 2::bigint, 'and so they are');
select is((select queued from shown where queue = 'keyed'), 3::bigint, 'with those of keys');
select ok((select oldest_runnable_ms between 0 and 60000 from shown where queue = 'keyed'),
    'how long the oldest has waited is told');
select is((select pause_reason from shown where queue = 'still'), 'a reason', 'so is a pause');
select results_eq(
    'select queue from shown where is_served order by queue',
    $$ values ('empty'), ('plain') $$, 'and what a live worker serves'
);
select is(
    (jobq_http.show_queues(most => 1) -> 1 ->> 'queue')
    || (jobq_http.show_queues(most => 1) -> 1 ->> 'queued'), 'keyed2', 'a count ends'
);
select jobq.enqueue('k', queue => 'still', after => array[j.job_id])
from jobq.job as j where j.queue = 'keyed' limit 1;
select is(
    (jobq_http.show_queues(max_queues => 1, first => 'still') -> 0)::jsonb
        @> '{"queue": "still", "blocked": 1, "queued": 0}',
    true, 'what waits for other jobs is counted by itself'
);
select is(
    (
        select string_agg(q ->> 'queue', ',')
        from json_array_elements(jobq_http.show_queues(max_queues => 2, first => 'key')) as q
    ), 'keyed,plain', 'a page begins where it is told, with a queue or between two'
);
select is(jobq_http.show_queues(first => 'z')::text, '[]', 'after the last there is none');
select throws_ok('select jobq_http.show_queues(0)', '22023', null, 'a count of none is refused');

select * from finish();
rollback;
