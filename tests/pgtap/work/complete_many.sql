-- What jobq.complete_many() promises.
begin;
select plan(28);

create temporary table batch (n integer, job_id uuid);
insert into batch select n, jobq.enqueue('work', to_jsonb(n))
from generate_series(1, 6) as n;
select from jobq.claim('{default}', 'w', 5);
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
    select b.n, c.attempt, c.outcome
    from jobq.complete_many(
        pg_temp.ids(3, 1, 6, 2), '{1,1,1,2}', '["three", null, "six", "two"]'
    ) with ordinality as c (job_id, attempt, outcome, n)
    join batch as b on b.job_id = c.job_id
    order by c.n
    $$,
    $$
    values (3, 1, 'succeeded'), (1, 1, 'succeeded'), (6, 1, 'lost'), (2, 2, 'lost')
    $$,
    'each attempt is told, in the order given, whether it still held its job'
);
select results_eq(
    'select b.n, j.state, j.result from batch as b join jobq.job as j using (job_id)
    order by 1',
    $$
    values (1, 'succeeded' collate "C", null::jsonb), (2, 'running', null),
    (3, 'succeeded', '"three"'), (4, 'running', null), (5, 'running', null),
    (6, 'queued', null)
    $$,
    'a lost attempt holds up no other, and each job gets its own result'
);
select results_eq(
    'select c.outcome from jobq.complete_many(pg_temp.ids(1), ''{1}'') as c',
    $$ values ('repeated') $$, 'a batch that is sent again is told so'
);
select is(
    (select j.result from jobq.job as j join batch as b using (job_id) where b.n = 3),
    '"three"',
    'and changes nothing'
);
select results_eq(
    'select c.outcome from jobq.complete_many(pg_temp.ids(2, 2), ''{0,1}'') as c',
    $$ values ('lost'), ('succeeded') $$,
    'of two attempts of one job only the one that holds it counts'
);
select results_eq(
    'select c.outcome
    from jobq.complete_many(pg_temp.ids(4), ''{1}'', ''[{"a": 1}]'') as c',
    $$ values ('succeeded') $$, 'a batch may have one job'
);
select is_empty('select * from jobq.complete_many(''{}'', ''{}'')', 'or none');
select is_empty(
    'select * from jobq.complete_many(''{}'', ''{}'', ''[]'')', 'with no results'
);
select results_eq(
    'select c.outcome
    from jobq.complete_many(array[null, gen_random_uuid()], ''{1,1}'') as c',
    $$ values ('lost'), ('lost') $$, 'an id that is null or unknown is lost'
);
select is(
    (select c.outcome from jobq.complete_many(array[null::uuid], '{1}', '["result"]') as c),
    'lost', 'so is one that is alone and has a result'
);

select jobq.configure(max_payload_bytes => 1024);
select is(
    refusal('select jobq.complete_many(' || a.arguments || ')'), a.refusal,
    format('complete_many(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('null, ''{1}''', '22004 NULL_ARGUMENT'),
    ('pg_temp.ids(5), null', '22004 NULL_ARGUMENT'),
    ('pg_temp.ids(5), ''{}''', '22023 INVALID_ARGUMENT'),
    ('pg_temp.ids(5), ''{1,1}''', '22023 INVALID_ARGUMENT'),
    ('pg_temp.ids(5), ''{1}'', ''[]''', '22023 INVALID_ARGUMENT'),
    ('pg_temp.ids(5), ''{1}'', ''{}''', '22023 INVALID_ARGUMENT'),
    ('pg_temp.ids(5), ''{1}'', ''null''', '22023 INVALID_ARGUMENT'),
    ('pg_temp.ids(5), ''{1}'', ''[1, 2]''', '22023 INVALID_ARGUMENT'),
    ('pg_temp.ids(5), ''{1}'', jsonb_build_array(repeat(''x'', 1023))',
        'JQ005 PAYLOAD_TOO_LARGE')
) as a (arguments, refusal);
select is(
    (select j.state::text from jobq.job as j join batch as b using (job_id)
    where b.n = 5),
    'running', 'a refused batch completes nothing'
);

select jobq.enqueue('twice', queue => 'twice') as twice \gset
select from jobq.claim('{twice}', 'w');
select jobq.complete(:'twice', 1);
select results_eq(
    format('select outcome from jobq.complete_many(array[%1$L, %1$L]::uuid[], ''{1,2}'')', :'twice'),
    $$ values ('repeated'), ('lost') $$, 'what had succeeded already is told from what was lost'
);

-- Attempts of several numbers in one batch, a stale one beside that which holds the job
select jobq.put_kind('gone', keep_succeeded => '0');
create temporary table mixed as
select n, jobq.enqueue(k.kind, to_jsonb(n), queue => 'mixed') as job_id, k.kind
from (values (1, 'kept'), (2, 'kept'), (3, 'gone'), (4, 'gone'), (5, 'gone')) as k (n, kind);
select from jobq.claim('{mixed}', 'w', 5);
select jobq.release(m.job_id, 1) from mixed as m where m.n in (1, 3);
select from jobq.claim('{mixed}', 'w', 2);
create function pg_temp.mixed(variadic n integer[])
returns uuid[]
language sql
as $$
select array_agg(b.job_id order by o.ordinal)
from unnest(mixed.n) with ordinality as o (n, ordinal)
left join pg_temp.mixed as b on b.n = o.n
$$;
select results_eq(
    $$ select c.outcome from jobq.complete_many(pg_temp.mixed(1, 2), '{1,2}') as c $$,
    $$ values ('lost'), ('lost') $$, 'no attempt of a batch counts for another job'
);
select results_eq(
    $$
    select c.outcome from jobq.complete_many(
        pg_temp.mixed(1, 2, null, 1), '{2,1,1,1}', '["one", "two", "none", "stale"]'
    ) as c
    $$,
    $$ values ('succeeded'), ('succeeded'), ('lost'), ('lost') $$,
    'each attempt of a batch is compared by itself'
);
select results_eq(
    'select m.n, j.result from mixed as m join jobq.job as j using (job_id) where m.n < 3 order by 1',
    $$ values (1, '"one"'::jsonb), (2, '"two"') $$,
    'and each job gets the result of the attempt that held it'
);
select jobq.complete_many(pg_temp.mixed(4), '{1}');
select results_eq(
    $$ select c.outcome from jobq.complete_many(pg_temp.mixed(3, 5), '{1,2}') as c $$,
    $$ values ('lost'), ('lost') $$, 'nor of jobs that leave no trace'
);
select results_eq(
    $$
    select c.outcome from jobq.complete_many(pg_temp.mixed(3, 3, 5), '{1,2,1}') as c
    $$,
    $$ values ('lost'), ('succeeded'), ('succeeded') $$,
    'also of jobs that leave no trace'
);

-- Arrays that are not counted from 1
select jobq.enqueue('work', '{}', 'zero');
select array_agg(c.job_id) as zero from jobq.claim('{zero}', 'w') as c \gset
select jobq.complete_many(('[0:0]=' || :'zero')::uuid[], '[0:0]={1}', '["one"]');
select results_eq(
    format('select j.result from jobq.get_job((%L::uuid[])[1]) as j', :'zero'),
    $$ values ('"one"'::jsonb) $$, 'a lone result is kept however its arrays are counted'
);
select jobq.put_kind('brief', keep_succeeded => '0');
select jobq.enqueue('brief', '{}', 'zero') from generate_series(1, 2);
select jobq.enqueue('work', '{}', 'zero');
select array_agg(c.job_id order by c.kind) as zero from jobq.claim('{zero}', 'w', 3) as c \gset
select jobq.complete_many((:'zero'::uuid[])[1:1], '{1}');
select results_eq(
    format(
        'select c.outcome from jobq.complete_many(%L, ''[0:1]={1,7}'') as c',
        '[0:1]=' || (:'zero'::uuid[])[2:3]::text
    ),
    $$ values ('succeeded'), ('lost') $$, 'nor are the outcomes taken for one another'
);

select * from finish();
rollback;
