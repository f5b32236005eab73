-- What jobq.list_jobs() promises.
begin;
select plan(23);

create temporary table batch as
select n, jobq.enqueue(
    case when n % 2 = 0 then 'even' else 'odd' end, to_jsonb(n),
    queue => case when n <= 3 then 'low' else 'high' end
) as job_id
from generate_series(1, 6) as n;
select from jobq.claim_job((select b.job_id from batch as b where b.n = 2), 'w');
select jobq.complete(b.job_id, 1) from batch as b where b.n = 2;
select from jobq.claim_job((select b.job_id from batch as b where b.n = 3), 'w');
select jobq.cancel(b.job_id) from batch as b where b.n = 4;
create function pg_temp.listed(arguments text)
returns integer[]
language plpgsql
as $$
declare
    _listed integer[];
begin
    execute format(
        'select array_agg((j.payload #>> ''{}'')::integer order by j.ordinality)
        from (
            select l.payload, row_number() over () as ordinality
            from jobq.list_jobs(%s) as l
        ) as j', arguments
    ) into _listed;
    return _listed;
end
$$;
select is(pg_temp.listed(l.arguments), l.listed, format('list_jobs(%s)', l.arguments))
from (
    values
    ('', '{6,5,4,3,2,1}'::integer[]),
    ('max_jobs => 2', '{6,5}'),
    ('kind => ''even''', '{6,4,2}'),
    ('queue => ''low''', '{3,2,1}'),
    ('kind => ''odd'', queue => ''high''', '{5}'),
    ('''queued''', '{6,5,1}'),
    ('''running''', '{3}'),
    ('''retrying''', null),
    ('''succeeded''', '{2}'),
    ('''cancelled''', '{4}'),
    ('''dead''', null),
    ('''queued'', ''odd''', '{5,1}'),
    ('kind => ''nobody''', null),
    ('before => (select b.job_id from batch as b where b.n = 4)', '{3,2,1}'),
    ('before => (select b.job_id from batch as b where b.n = 4), max_jobs => 1', '{3}'),
    ('before => (select b.job_id from batch as b where b.n = 1)', null)
) as l (arguments, listed);
select is_empty(
    'select l.* from jobq.list_jobs() as l except select j.* from jobq.job as j',
    'jobs come as jobq.job shows them'
);
select is(
    refusal('select jobq.list_jobs(' || a.arguments || ')'), a.refusal,
    format('list_jobs(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('max_jobs => null', '22004 NULL_ARGUMENT'),
    ('max_jobs => 0', '22023 INVALID_ARGUMENT'),
    ('max_jobs => 1000', 'none'), ('max_jobs => 1001', '22023 INVALID_ARGUMENT'),
    ('''paused''', '22023 INVALID_ARGUMENT'), ('''''', '22023 INVALID_ARGUMENT')
) as a (arguments, refusal);

select * from finish();
rollback;
