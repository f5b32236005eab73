-- What becomes of keys in batches, when they have passed on, and when they are old.
-- Needs more than the core.
begin;
select plan(16);

create function pg_temp.refusal(statement text)
returns text
language plpgsql
as $$
declare
    _code text;
    _detail text;
begin
    execute statement;
    return 'taken';
exception
    when others then
        get stacked diagnostics _code = constraint_name, _detail = pg_exception_detail;
        return concat_ws(' ', sqlstate, _code, substring(_detail from '[0-9a-f-]{36}'));
end
$$;

-- Batches
create temporary table first as
select * from jobq.enqueue_many('[
    {"kind": "k", "idempotency_key": "a"},
    {"kind": "k", "idempotency_key": "b", "dedup_key": "d"},
    {"kind": "k"},
    {"kind": "k", "idempotency_key": "a"},
    {"kind": "k", "dedup_key": "d"},
    {"kind": "k", "idempotency_key": "c", "dedup_key": "d"},
    {"kind": "k", "idempotency_key": "c"}
]');
select results_eq(
    'select ordinal, created from first order by ordinal',
    $$ values (1, true), (2, true), (3, true), (4, false), (5, false), (6, false), (7, false) $$,
    'of jobs with one key the first is made'
);
select results_eq(
    'select f.ordinal, t.ordinal from first as f join first as t using (job_id)
    where t.created and not f.created order by 1',
    'values (4, 1), (5, 2), (6, 2), (7, 2)',
    'and the others are told which, also where its dedup key was taken'
);
select is(
    (select count(*) from jobq.job as j join first as f using (job_id)), 7::bigint,
    'every id that is told is a job'
);
select results_eq(
    $$
    select f.ordinal, n.created, n.job_id = f.job_id
    from jobq.enqueue_many('[
        {"kind": "k", "idempotency_key": "c"}, {"kind": "k", "idempotency_key": "new"},
        {"kind": "k", "idempotency_key": "a", "payload": [1]}
    ]') as n
    join (values (1, 7), (2, 3), (3, 1)) as p (new, old) on p.new = n.ordinal
    join first as f on f.ordinal = p.old
    order by n.ordinal
    $$,
    $$ values (7, false, true), (3, true, false), (1, false, true) $$,
    'later batches find them'
);

-- Redrive
select jobq.put_kind('again', reuse_key_after_failure => true, max_attempts => 1);
select jobq.enqueue('again', idempotency_key => 'one', queue => 'r') as one \gset
select from jobq.claim('{r}', 'w');
select jobq.fail(:'one', 1, 'boom');
select jobq.enqueue('again', idempotency_key => 'one', queue => 'r') as two \gset
select isnt(:'two'::uuid, :'one', 'after a failure the key passes to a new job');
select is(
    pg_temp.refusal(format('select jobq.redrive(%L)', :'one')),
    'JQ004 IDEMPOTENCY_CONFLICT ' || :'two',
    'then the first is not redriven, and the holder of its key is named'
);
select is(
    pg_temp.refusal(format(
        'update jobq.job set state = ''queued'' where job_id = %L', :'one'
    )),
    'JQ004 IDEMPOTENCY_CONFLICT ' || :'two', 'nor through the view'
);
select is_empty(
    $$ select jobq.redrive_many(kind => 'again') $$, 'nor with many, which passes it over'
);
select from jobq.claim('{r}', 'w');
select jobq.fail(:'two', 1, 'boom');
select lives_ok(
    format('select jobq.redrive(%L)', :'one'), 'once the holder has failed it may be'
);
select is(
    jobq.enqueue('again', idempotency_key => 'one', queue => 'r'), :'one'::uuid,
    'and it has its key again'
);
select is(
    pg_temp.refusal(format('select jobq.redrive(%L)', :'two')),
    'JQ004 IDEMPOTENCY_CONFLICT ' || :'one', 'so that the second waits for it'
);
select jobq.enqueue('k', dedup_key => 'gone', queue => 'r2') as gone \gset
select jobq.cancel(:'gone');
select jobq.enqueue('k', dedup_key => 'gone', queue => 'r2') as live \gset
select is(
    pg_temp.refusal(format('select jobq.redrive(%L)', :'gone')),
    'JQ004 DEDUP_CONFLICT ' || :'live', 'a taken dedup key tells its holder too'
);
select is(
    (select count(*) from jobq.job as j where j.job_id in (:'gone', :'one', :'two')),
    3::bigint, 'whoever is refused stays where he is'
);

-- Old keys
select jobq.enqueue('k', idempotency_key => 'old') as old \gset
update jobq_private.idempotency_key set created_at = now() - interval '31 days'
where idempotency_key = 'old';
select is(
    jobq.enqueue('k', idempotency_key => 'old'), :'old'::uuid, 'a live job keeps its key'
);
select jobq.cancel(:'old');
select is(jobq_internal.find_job('k', 'old'), null::uuid, 'a key past its retention stands for nothing');
select isnt(
    jobq.enqueue('k', idempotency_key => 'old'), :'old'::uuid,
    'and is free, whether or not it was pruned'
);

select * from finish();
rollback;
