-- What show_history() promises: buckets to the last that is over, by queue or kind, and neighbours
-- together where fewer are asked for.
begin;
select plan(12);

select date_bin('1 h', clock_timestamp() - interval '10 s', '2000-01-01 UTC') as t \gset
insert into jobq_private.history (
    minutes, bucket, queue, kind, enqueued, succeeded, failed, dead, cancelled
)
values
    (60, :'t'::timestamptz - interval '1 h', 'q1', 'k1', 5, 4, 3, 2, 1),
    (60, :'t'::timestamptz - interval '4 h', 'q1', 'k2', 3, 0, 0, 0, 0),
    (60, :'t'::timestamptz - interval '4 h', 'q2', 'k1', 1, 0, 0, 0, 0),
    (60, :'t'::timestamptz - interval '5 h', 'q1', 'k1', 7, 0, 0, 0, 0),
    (60, :'t'::timestamptz - interval '720 h', 'q1', 'k1', 11, 0, 0, 0, 0),
    (60, :'t'::timestamptz - interval '721 h', 'q1', 'k1', 13, 0, 0, 0, 0),
    (10, :'t'::timestamptz - interval '1 h', 'q1', 'k1', 17, 0, 0, 0, 0);
-- Three jobs of the class from 2^13 to 2^13.5 ms, and one of less than a millisecond.
insert into jobq_private.latency (minutes, bucket, counts)
select 60, :'t'::timestamptz - h * interval '1 h', array(
    select case n when class then jobs else 0 end from generate_series(1, 50) as n
)
from (values (1, 27, 3), (2, 1, 1)) as l (h, class, jobs);

select is(
    jobq_http.show_history('month') ->> 'width_ms', '3600000', 'a month is told by hour'
);
select is(
    (jobq_http.show_history('month') ->> 'until')::timestamptz, :'t'::timestamptz,
    'to the last one that is over'
);
select is(
    (jobq_http.show_history('month') -> 'counts')::jsonb,
    '[[0, "q1", 11, 0, 0, 0, 0], [715, "q1", 7, 0, 0, 0, 0], [716, "q1", 3, 0, 0, 0, 0],
    [716, "q2", 1, 0, 0, 0, 0], [719, "q1", 5, 4, 3, 2, 1]]', 'by queue'
);
select is(
    (jobq_http.show_history('month', 'kind', queue => 'q1') -> 'counts')::jsonb,
    '[[0, "k1", 11, 0, 0, 0, 0], [715, "k1", 7, 0, 0, 0, 0], [716, "k2", 3, 0, 0, 0, 0],
    [719, "k1", 5, 4, 3, 2, 1]]', 'or by kind, of one queue'
);
select is(
    (jobq_http.show_history('month') -> 'latency')::jsonb,
    '[[718, 1, 1], [719, 9742, 9742]]', 'latency is the middle of its class'
);
select is(
    jobq_http.show_history('month', max_buckets => 180) ->> 'width_ms', '14400000',
    'a quarter of the buckets are four times as wide'
);
select is(
    (jobq_http.show_history('month', max_buckets => 180) -> 'counts')::jsonb,
    '[[0, "q1", 11, 0, 0, 0, 0], [178, "q1", 7, 0, 0, 0, 0], [179, "q1", 8, 4, 3, 2, 1],
    [179, "q2", 1, 0, 0, 0, 0]]', 'and have what theirs had'
);
select is(
    (jobq_http.show_history('month', max_buckets => 180) -> 'latency')::jsonb,
    '[[179, 9742, 9742]]', 'whose latencies are ranked together'
);
select is(
    (jobq_http.show_history('month', max_buckets => 500) ->> 'width_ms')::integer, 7200000,
    'no more buckets than were asked for'
);
select is(
    jobq_http.show_history('day', max_buckets => 144) ->> 'width_ms', '600000',
    'as many as there are stay as they are'
);
select throws_ok('select jobq_http.show_history(max_buckets => 0)', '22023', null, 'or none');
select throws_ok('select jobq_http.show_history(max_buckets => null)', '22004', null, 'or null');

select * from finish();
rollback;
