-- What jobq.exchange() promises.
begin;
select plan(19);

create temporary table batch (n integer, job_id uuid);
insert into batch
select n, jobq.enqueue('work', to_jsonb(n), dedup_key => n::text)
from generate_series(1, 6) as n;
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
    select e.outcome, b.n, e.attempt, e.kind, e.payload, e.queue, e.max_attempts,
        e.timeout,
        e.lease_expires_at > now(), e.lease, e.run_at, e.created_at, e.idempotency_key,
        e.metadata
    from jobq.exchange('{default}', 'w', 3) as e
    join batch as b using (job_id)
    order by b.n
    $$,
    $$
    select 'claimed', n, 1, 'work', to_jsonb(n), 'default', 5, interval '5 min', true,
        interval '30 s', now(), now(), null::text, '{}'::jsonb
    from generate_series(1, 3) as n
    $$,
    'without anything to finish it is a claim'
);
create temporary table second as
select b.n, e.*
from jobq.exchange(
    '{default}', 'w', 2, pg_temp.ids(1, 2, 6), '{1,7,0}', '["one", "two", null]',
    jsonb_build_array(
        jsonb_build_object('job_id', (pg_temp.ids(3))[1], 'attempt', 1, 'error',
            'boom'),
        jsonb_build_object('job_id', (pg_temp.ids(5))[1], 'attempt', 4, 'error', 'boom')
    )
) as e
left join batch as b using (job_id);
select results_eq(
    'select n, outcome, attempt, kind from second order by outcome, n',
    $$
    values (4, 'claimed', 1, 'work'), (5, 'claimed', 1, 'work'), (2, 'lost', 7, null),
    (5, 'lost', 4, null), (6, 'lost', 0, null), (3, 'retrying', 1, null)
    $$,
    'it tells what became of failures, what was lost, and claims the next jobs'
);
select results_eq(
    'select b.n, j.state, j.result, j.last_error from batch as b join jobq.job as j
    using (job_id) order by b.n',
    $$
    values (1, 'succeeded' collate "C", '"one"'::jsonb, null),
    (2, 'running', null, null),
    (3, 'retrying', null, 'boom'), (4, 'running', null, null),
    (5, 'running', null, null),
    (6, 'queued', null, null)
    $$,
    'what held its job is completed or failed'
);
select is_empty(
    $$ select * from jobq.exchange('{default}', 'w', 0, pg_temp.ids(2), '{1}') $$,
    'a worker that stops may finish without claiming'
);
select results_eq(
    $$
    select b.n, e.outcome, e.attempt
    from jobq.exchange('{default}', 'w', 9,
        failures => jsonb_build_array(jsonb_build_object(
        'job_id', (pg_temp.ids(4))[1], 'attempt', 1, 'retry_in', '0'
    ))) as e
    join batch as b using (job_id)
    order by b.n, e.attempt
    $$,
    $$ values (4, 'retrying', 1), (4, 'claimed', 2), (6, 'claimed', 1) $$,
    'what it frees it can claim at once'
);
select is_empty(
    'select * from jobq.exchange(''{}'', ''w'', 5)', 'a worker may serve no queue'
);

-- One refused part refuses the whole
select is(
    refusal('select jobq.exchange(' || a.arguments || ')'), a.refusal,
    format('exchange(%s): %s', left(a.arguments, 70), a.refusal)
)
from (
    values
    ('null, ''w'', 1', '22004 NULL_ARGUMENT'),
    ('''{}'', null, 1', '22004 NULL_ARGUMENT'),
    ('''{}'', ''w'', null', '22004 NULL_ARGUMENT'),
    ('''{}'', ''w'', -1, pg_temp.ids(6), ''{1}''', '22023 INVALID_ARGUMENT'),
    ('''{}'', ''w'', 1, pg_temp.ids(6), ''{1,1}''', '22023 INVALID_ARGUMENT'),
    ('''{}'', ''w'', 1, pg_temp.ids(6), null', '22004 NULL_ARGUMENT'),
    ('''{}'', ''w'', 1, null, ''{1}''', '22004 NULL_ARGUMENT'),
    ('''{}'', ''w'', 1, ''{}'', ''{1}''', '22023 INVALID_ARGUMENT'),
    ('''{}'', ''w'', 1, pg_temp.ids(6), ''{1}'', ''[]''', '22023 INVALID_ARGUMENT'),
    ('''{}'', ''w'', 1, pg_temp.ids(6), ''{1}'', ''[1]'', ''{}''',
        '22023 INVALID_ARGUMENT'),
    ('''{}'', ''w'', 1, failures => ''{}''', '22023 INVALID_ARGUMENT'),
    ('''{}'', ''w'', 1, max_limited => -1', '22023 INVALID_ARGUMENT')
) as a (arguments, refusal);
select is(
    (jobq.get_job((pg_temp.ids(6))[1])).state::text, 'running',
    'a refused exchange finishes nothing'
);

select * from finish();
rollback;
