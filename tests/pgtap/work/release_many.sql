-- What jobq.release_many() promises.
begin;
select plan(9);

create temporary table batch (n integer, job_id uuid);
insert into batch select n, jobq.enqueue('work') from generate_series(1, 5) as n;
select from jobq.claim('{default}', 'w', 4);
select jobq.cancel(b.job_id) from batch as b where b.n = 2;
create function pg_temp.ids(variadic n integer[])
returns uuid[]
language sql
as $$
select array_agg(b.job_id order by o.ordinal)
from unnest(ids.n) with ordinality as o (n, ordinal)
join batch as b on b.n = o.n
$$;
select results_eq(
    $$
    select b.n, r.attempt, r.state
    from jobq.release_many(pg_temp.ids(3, 2, 1, 5), '{1,1,2,0}', now() + interval '1 h')
        with ordinality as r (job_id, attempt, state, n)
    join batch as b using (job_id)
    order by r.n
    $$,
    $$
    values (3, 1, 'queued'), (2, 1, 'cancelled'), (1, 2, null), (5, 0, null)
    $$,
    'each attempt is told its job''s new state, in order, and null where it is lost'
);
select results_eq(
    'select b.n, j.state, j.attempts, j.run_at > now() from batch as b
    join jobq.job as j using (job_id) order by b.n',
    $$
    values (1, 'running' collate "C", 1, false), (2, 'cancelled', 1, true),
    (3, 'queued', 0, true), (4, 'running', 1, false), (5, 'queued', 0, false)
    $$,
    'a lost attempt holds up no other and changes nothing'
);
select results_eq(
    $$ select r.state from jobq.release_many(pg_temp.ids(4, 4), '{0,1}') as r $$,
    $$ values (null), ('queued') $$,
    'of two attempts of one job only the one that holds it counts'
);
select is(
    (select j.run_at from jobq.job as j join batch as b using (job_id) where b.n = 4),
    now(),
    'without run_at it keeps its own'
);
select is_empty(
    'select * from jobq.release_many(''{}'', ''{}'')', 'a batch may be empty'
);
select is(
    refusal('select jobq.release_many(' || a.arguments || ')'), a.refusal,
    format('release_many(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('null, ''{1}''', '22004 NULL_ARGUMENT'),
    ('pg_temp.ids(1), null', '22004 NULL_ARGUMENT'),
    ('pg_temp.ids(1), ''{1,1}''', '22023 INVALID_ARGUMENT'),
    ('pg_temp.ids(1), ''{1}'', ''infinity''', '22023 INVALID_ARGUMENT')
) as a (arguments, refusal);

select * from finish();
rollback;
