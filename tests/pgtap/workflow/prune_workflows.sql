-- What prune_workflows() promises of jobs that are forgotten; for events and waits: wait_for.sql.
begin;
select plan(5);

create temp table id as
select n, ('01000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid as job_id
from generate_series(1, 4) as n;
-- The third job is kept.
select jobq.enqueue('kept') as kept \gset
select from jobq.claim_job(:'kept', 'w');
select from jobq.complete(:'kept', 1);
alter table jobq_private.job_archive disable trigger all;
insert into jobq_private.job_archive
select (jsonb_populate_record(a, jsonb_build_object('job_id', i.job_id))).*
from jobq_private.job_archive as a cross join id as i
where a.job_id = :'kept' and i.n = 3;
insert into jobq_private.step (job_id, name, value, attempt)
select i.job_id, s, '1', 1 from id as i cross join generate_series(1, 2) as s where i.n <= 3;
insert into jobq_private.stream_chunk (job_id, stream, generation, n, chunk)
select i.job_id, 'a', 1, c, '1' from id as i cross join generate_series(1, 5) as c where i.n > 1;
insert into jobq_private.edge (child, parent, after_failure)
select i.job_id, :'kept', 'cancel' from id as i where i.n >= 2;
insert into jobq_private.node (job_id, graph_id, name)
select i.job_id, :'kept', i.n from id as i;

select is(jobq_private.prune_workflows(1), 3::bigint, 'other rows than chunks: of max_rows jobs');
select is(jobq_private.prune_workflows(5), 11::bigint, 'max_rows chunks, and the rest of their jobs');
select is(jobq_private.prune_workflows(5), 5::bigint, 'the chunks that were left');
select is(jobq_private.prune_workflows(1000), 0::bigint, 'all that remains is needed');
select results_eq(
    format($$
        select 'step', job_id, count(*) from jobq_private.step group by 2
        union all select 'chunk', job_id, count(*) from jobq_private.stream_chunk group by 2
        union all select 'edge', child, count(*) from jobq_private.edge group by 2
        union all select 'node', job_id, count(*) from jobq_private.node group by 2
        order by 3, 1
    $$, :'kept'),
    $$ select w.what, i.job_id, w.rows
        from id as i
        cross join (values ('edge', 1::bigint), ('node', 1), ('step', 2), ('chunk', 5)) as w (what, rows)
        where i.n = 3 $$,
    'the rows of a job that is kept are kept'
);

select * from finish();
rollback;
