-- Of long queues what waits is told as maintenance has counted it, and that this is so.
begin;
select plan(10);

create function pg_temp.told()
returns text
language sql
begin atomic
    select format('%s %s %s %s', s.queued, s.scheduled, s.retrying, s.is_exact)
    from jobq.queue_stats() as s
    where s.queue = 'long';
end;

-- A hundred jobs of each queue are looked at, then more of the longer ones.
select count(*) from jobq.enqueue_many((
    select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'q' || n))
    from generate_series(1, 500) as n
));
select count(*) from jobq.enqueue_many((
    select jsonb_agg(jsonb_build_object(
        'kind', 'k', 'queue', 'long', 'priority', -n,
        'run_at', case when n <= 100 then now() - n * interval '1 s' else now() + '1 h' end
    ))
    from generate_series(1, 150) as n
));
select results_eq(
    $$ select queued, scheduled, is_exact, ends_at from jobq_private.waiting_counts(110)
    where queue = 'long' $$,
    $$ values (100::bigint, 1::bigint, false, 100) $$,
    'with many queues and a low bound, the first hundred jobs of each are looked at'
);
select is(pg_temp.told(), '100 50 0 t', 'a long queue gets what short ones leave of the bound');
select count(*) from jobq.enqueue_many((
    select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'long'))
    from generate_series(1, 9900)
));
select is(pg_temp.told(), '10000 1 0 f', 'until they are counted, those that were looked at are told');
select ok(
    (select bool_and(s.is_exact) from jobq.queue_stats() as s where s.queue <> 'long'),
    'other queues are counted in full'
);
select jobq_private.count_waiting();
select is(pg_temp.told(), '10000 50 0 f', 'then all, and that they are not of now');
select is(
    (select m.value from jobq.metrics() as m where (m.name, m.queue) = ('queue_backlog', 'long')),
    10050::double precision, 'so says the backlog'
);
select is(
    (
        select count(*) from jobq.metrics() as m
        where m.name = 'queue_backlog' and m.value = 1 and m.queue <> 'long'
    ),
    500::bigint, 'beside those of the other queues'
);
select is(
    (select s.oldest_runnable from jobq.queue_stats() as s where s.queue = 'long'),
    interval '100 s', 'the oldest is that of all'
);
select from jobq.claim('{long}', 'w', 60);
select is(pg_temp.told(), '9940 50 0 t', 'a queue that is short again is counted in full');
update jobq_private.waiting_count set took = '1 min';
select count(*) from jobq.enqueue_many((
    select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'long', 'priority', -500))
    from generate_series(1, 200)
));
select jobq_private.count_waiting();
select is(
    (select c.queued from jobq_private.waiting_count as c where c.queue = 'long'), 10000::bigint,
    'a count that takes long is not made again soon'
);

select * from finish();
rollback;
