-- Of long queues what waits is told as maintenance has counted it, and that this is so.
begin;
select plan(8);

create function pg_temp.told()
returns text
language sql
begin atomic
    select format('%s %s %s %s', s.queued, s.scheduled, s.retrying, s.is_exact)
    from jobq.queue_stats() as s
    where s.queue = 'long';
end;

-- With so many queues, the first hundred jobs of each are looked at.
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
select is(pg_temp.told(), '100 1 0 f', 'until they are counted, those that were looked at are told');
select ok(
    (select bool_and(s.is_exact) from jobq.queue_stats() as s where s.queue <> 'long'),
    'other queues are counted in full'
);
select jobq_private.count_waiting();
select is(pg_temp.told(), '100 50 0 f', 'then all, and that they are not of now');
select is(
    (select m.value from jobq.metrics() as m where (m.name, m.queue) = ('queue_backlog', 'long')),
    150::double precision, 'so says the backlog'
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
select is(pg_temp.told(), '40 50 0 t', 'a queue that is short again is counted in full');
update jobq_private.waiting_count set took = '1 min';
select count(*) from jobq.enqueue_many((
    select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'long', 'priority', -500))
    from generate_series(1, 200)
));
select jobq_private.count_waiting();
select is(
    (select c.queued from jobq_private.waiting_count as c where c.queue = 'long'), 100::bigint,
    'a count that takes long is not made again soon'
);

select * from finish();
rollback;
