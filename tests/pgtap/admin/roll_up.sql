-- What the roll-up promises: every job of a minute once, wider buckets, an end to what is kept.
begin;
select plan(15);

-- Two hours before the last full hour; roll_up() counts one ten seconds after its end.
select date_trunc('hour', now() - interval '10 s') - interval '2 h' as t \gset
update jobq_private.history_mark set rolled_to = :'t';

-- Jobs as if they had been made and had ended in the first two minutes after :t.
create function pg_temp.ended(at timestamptz, state text, took interval, queue text default 'q')
returns void language sql as $$
    insert into jobq_private.job_archive (
        job_id, created_at, run_at, claimed_at, lease, timeout, attempt, max_attempts,
        previous_state, state, queue, kind, finished_at
    )
    select (left(jobq_private.id_floor(at - took)::text, 15) || substr(gen_random_uuid()::text, 16))::uuid,
        at - took, at - took, at, '30 s', '5 min', 1, 5, 'running', state, queue, 'k', at
$$;
select pg_temp.ended(:'t'::timestamptz + interval '30 s', 'succeeded', '10 s')
from generate_series(1, 3);
select pg_temp.ended(:'t'::timestamptz + interval '50 s', 'dead', '40 s');
select pg_temp.ended(:'t'::timestamptz + interval '65 s', 'cancelled', '10 s');
select pg_temp.ended(:'t'::timestamptz + interval '60 min', 'succeeded', '59 min');
insert into jobq_private.attempt (job_id, attempt, state, started_at, finished_at)
select a.job_id, 1, 'retrying', :'t', :'t'::timestamptz + interval '15 s'
from jobq_private.job_archive as a
where a.state = 'dead' and a.finished_at = :'t'::timestamptz + interval '50 s';

select is(jobq_private.roll_up(), 2::bigint, 'a call counts ten minutes');
select is(
    (select rolled_to from jobq_private.history_mark), :'t'::timestamptz + interval '10 min',
    'and remembers where it is'
);
select results_eq(
    'select bucket, enqueued, succeeded, failed, dead, cancelled from jobq_private.history
    where minutes = 1 order by bucket',
    format(
        $$ values (%L::timestamptz, 5::bigint, 3::bigint, 1::bigint, 1::bigint, 0::bigint),
        (%L, 1, 0, 0, 0, 1) $$, :'t', :'t'::timestamptz + interval '1 min'
    ),
    'jobs count when they were made, and when they ended, attempts when they failed'
);
select results_eq(
    $$ select name collate "default", value from jobq.metrics() where queue = 'q' and value > 0
    and name ~ '^(jobs|attempts)_' order by 1 $$,
    $$ values ('attempts_failed', 1::double precision), ('jobs_cancelled', 1), ('jobs_dead', 1),
    ('jobs_enqueued', 6), ('jobs_succeeded', 3) $$,
    'and are added to the totals of their queue'
);
select is(
    (select sum(enqueued + succeeded + dead) from jobq_private.history where minutes = 10),
    10::numeric, 'ten minutes that are over make a wider bucket'
);
select is(
    (select array_position(counts, 3) from jobq_private.latency where minutes = 1), 27,
    'ten seconds are in the class from 2^13 to 2^13.5 ms'
);
select jobq_private.roll_up() from generate_series(1, 30);
select cmp_ok((select rolled_to from jobq_private.history_mark), '<=', now(),
    'it stops at the present');
select is(jobq_private.roll_up(), 0::bigint, 'and then does nothing');
select is(
    (select sum(succeeded) from jobq_private.history where minutes = 60 and bucket < now()),
    4::numeric, 'hours are made too'
);
select is(
    (select sum(enqueued) from jobq_private.history where minutes = 1), 6::numeric,
    'nothing is counted twice'
);

-- Few pairs a bucket.
update jobq_private.history_mark set rolled_to = date_trunc('minute', now()) - interval '5 min';
select pg_temp.ended(date_trunc('minute', now()) - interval '4 min', 'succeeded', '0 s', 'q' || n)
from generate_series(1, 30) as n;
select jobq_private.roll_up();
select is(
    (select count(*) from jobq_private.history
    where minutes = 1 and bucket = date_trunc('minute', now()) - interval '4 min'),
    21::bigint, 'a bucket has twenty pairs and the others'
);
select is(
    (select succeeded from jobq_private.history where minutes = 1 and queue = '(other)'),
    10::bigint, 'which have what is left'
);

-- What is old goes.
update jobq_private.history set bucket = bucket - interval '1 day' where minutes = 1;
update jobq_private.history_mark set rolled_to = rolled_to - interval '1 min';
select jobq_private.roll_up();
select is((select count(*) from jobq_private.history
    where minutes = 1 and bucket < now() - interval '4 h'), 0::bigint, 'what is old is forgotten');

select cmp_ok(
    (select json_array_length(jobq_http.show_history('day') -> 'counts')), '>', 0,
    'show_history() shows it'
);
select throws_ok('select jobq_http.show_history(''year'')', '22023', null,
    'a span that there is not is refused');

select * from finish();
rollback;
