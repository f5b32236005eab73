-- What jobq.redrive_many() promises.
begin;
select plan(24);

create function pg_temp.dead(n integer, options jsonb default '{}',
    code text default 'E')
returns uuid
language plpgsql
as $$
declare
    _job_id uuid;
begin
    select e.job_id into _job_id
    from jobq.enqueue_many(jsonb_build_array(
        jsonb_build_object('kind', 'work', 'payload', dead.n) || dead.options
    )) as e;
    perform jobq.claim_job(_job_id, 'w');
    perform jobq.fail(_job_id, 1, 'boom', dead.code, retryable => false);
    return _job_id;
end
$$;
select is_empty('select jobq.redrive_many()', 'with nothing dead, nothing comes back');

-- Bounded, oldest first: made in another order than they died
create temporary table aged as
select n, pg_temp.dead(n) as job_id from generate_series(1, 6) as n;
set local session_replication_role = replica;
update jobq_private.job_archive as a
set finished_at = a.finished_at - make_interval(hours => (a.payload #>> '{}')::integer);
set local session_replication_role = origin;
select results_eq(
    'select a.n from jobq.redrive_many(max_jobs => 2) as r (job_id)
    join aged as a using (job_id) order by a.n',
    'values (5), (6)', 'the oldest deaths come back first, no more than max_jobs'
);
select results_eq(
    'select a.n
    from jobq.redrive_many(since => now() - interval ''150 min'') as r (job_id)
    join aged as a using (job_id) order by a.n',
    'values (1), (2)', 'since bounds when a job ended'
);
select is_empty(
    'select from aged as a join jobq.job as j using (job_id)
    where (a.n in (1, 2, 5, 6)) <> (j.state = ''queued'')',
    'those jobs are queued again, and no others'
);
select is(
    (select count(*) from jobq.redrive_many()), 2::bigint, 'by default all come back'
);

-- Filters
create temporary table various as
select 'q' as label, pg_temp.dead(1, '{"queue": "q"}') as job_id
union all select 'k', pg_temp.dead(2, '{"kind": "k"}')
union all select 'c', pg_temp.dead(3, '{}', 'C')
union all select 'qkc', pg_temp.dead(4, '{"queue": "q", "kind": "k"}', 'C');
select jobq.cancel(jobq.enqueue('k', queue => 'q'));
create function pg_temp.found(arguments text)
returns text[]
language plpgsql
as $$
declare
    _found text[];
begin
    execute format(
        'select array_agg(v.label order by v.label)
        from jobq.redrive_many(%s) as r (job_id)
        left join various as v using (job_id)', arguments
    ) into _found;
    raise exception using errcode = 'P0099', message = _found;
exception
    when sqlstate 'P0099' then
        return sqlerrm::text[];
end
$$;
select is(pg_temp.found(f.arguments), f.labels, f.claim)
from (
    values
    ('queue => ''q''', '{q,qkc}'::text[], 'of a queue'),
    ('kind => ''k''', '{k,qkc}', 'of a kind'),
    ('error_code => ''C''', '{c,qkc}', 'of an error code'),
    ('''q'', ''k'', ''-infinity'', ''C''', '{qkc}', 'of all three'),
    ('', '{c,k,q,qkc}', 'dead jobs only, never cancelled ones')
) as f (arguments, labels, claim);

-- Dedup keys
create temporary table keyed as
select 1 as n, pg_temp.dead(1, '{"kind": "d", "dedup_key": "k"}') as job_id
union all select 2, pg_temp.dead(2, '{"kind": "d", "dedup_key": "k"}')
union all select 3, pg_temp.dead(3, '{"kind": "d", "dedup_key": "held"}')
union all select 4,
pg_temp.dead(4, '{"kind": "d", "dedup_key": "m", "dedup": "enqueue"}')
union all select 5,
pg_temp.dead(5, '{"kind": "d", "dedup_key": "m", "dedup": "enqueue"}')
union all select 6, pg_temp.dead(6, '{"kind": "dx", "dedup_key": "y"}')
union all select 7, pg_temp.dead(7, '{"kind": "d", "dedup_key": "xy"}')
union all select 8,
pg_temp.dead(8, '{"kind": "d", "dedup_key": "b", "dedup": "debounce", "run_at": "2020-01-01"}');
select jobq.enqueue('d', dedup_key => 'held');
select jobq.enqueue('d', dedup_key => 'b', dedup => 'debounce');
select results_eq(
    'select k.n from jobq.redrive_many() as r (job_id) join keyed as k using (job_id)
    order by k.n',
    'values (1), (4), (5), (6), (7), (8)',
    'one job comes back for each free dedup key, and all that hold none'
);

-- Idempotency keys that a failure frees
select jobq.put_kind('free', reuse_key_after_failure => true);
create temporary table freed as
select n, pg_temp.dead(n, '{"kind": "free", "idempotency_key": "k"}') as job_id
from generate_series(1, 3) as n;
create temporary table back as
select r.job_id from jobq.redrive_many(kind => 'free') as r (job_id);
select results_eq(
    $$
        select f.n, k.job_id = f.job_id
        from back
        join freed as f using (job_id)
        cross join jobq_private.idempotency_key as k
        where k.kind = 'free'
    $$,
    'values (1, true)', 'of dead jobs with one idempotency key one comes back, and has it'
);

create temporary table picked as
select pg_temp.dead(8, '{"kind": "picked"}') as job_id union all
select pg_temp.dead(9, '{"kind": "picked"}');
select results_eq(
    $$
        select count(*) from jobq.redrive_many(
            job_ids => array[(select job_id from picked limit 1), gen_random_uuid()]
        )
    $$,
    'values (1::bigint)', 'of the jobs that are named those come back that are dead'
);

-- By the endpoint as it is now
select jobq.put_endpoint('hook', 'HTTP', '{"url": "http://old"}') as doc \gset
create temporary table delivered as
select n, pg_temp.dead(9 + n, '{"kind": "hook"}') as job_id from generate_series(1, 2) as n;
select jobq.put_endpoint('hook', 'HTTP', '{"url": "http://new"}') as doc \gset
select results_eq(
    'select r from jobq.redrive_many(kind => ''hook'', dry_run => true) as r order by r',
    'select job_id from delivered order by job_id', 'a dry run says which jobs would come back'
);
select is_empty(
    'select from jobq_private.job where kind = ''hook''', 'and leaves them where they are'
);
select jobq.redrive_many(job_ids => array_agg(job_id)) from delivered where n = 1;
select jobq.redrive_many(job_ids => array_agg(job_id), latest => true) from delivered where n = 2;
select results_eq(
    $$
        select d.spec::jsonb ->> 'url'
        from delivered
        join jobq_private.job as j using (job_id)
        cross join lateral jobq_internal.get_delivery('hook', j.delivery_version, j.job_id) as d
        order by n
    $$,
    'values (''http://old''), (''http://new'')',
    'a delivery is repeated as it was made, or by the endpoint as it is now'
);

-- An endpoint that is deleted, and put back
select jobq.put_endpoint('gone', 'HTTP', '{"url": "http://old"}') as doc \gset
select pg_temp.dead(12, '{"kind": "gone"}') as lost \gset
select jobq.delete_definition('endpoint', 'gone');
select jobq.redrive(:'lost');
prepare delivery as
select d.spec::jsonb ->> 'url'
from jobq_private.job as j
cross join lateral jobq_internal.get_delivery('gone', j.delivery_version, j.job_id) as d
where j.job_id = :'lost' and j.state = 'queued';
select is_empty('delivery', 'without its endpoint a job that was redriven waits');
select jobq.put_endpoint('gone', 'HTTP', '{"url": "http://new"}') as doc \gset
select results_eq(
    'delivery', 'values (''http://old'')',
    'and is delivered by the version that it was made under once there is one again'
);

select is(
    refusal('select jobq.redrive_many(' || a.arguments || ')'), a.refusal,
    format('redrive_many(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('since => null', '22004 NULL_ARGUMENT'),
    ('max_jobs => null', '22004 NULL_ARGUMENT'),
    ('dry_run => null', '22004 NULL_ARGUMENT'),
    ('latest => null', '22004 NULL_ARGUMENT'),
    ('max_jobs => 0', '22023 INVALID_ARGUMENT'),
    ('max_jobs => 100001', '22023 INVALID_ARGUMENT')
) as a (arguments, refusal);

select * from finish();
rollback;
