-- What jobq_http.page_jobs() promises: every job once, in pages, newest first.
begin;
select plan(11);

select jobq.enqueue('k' || n % 2, metadata => jsonb_build_object('n', n))
from generate_series(1, 7) as n;
select jobq.enqueue('dying') as dying \gset
select from jobq.claim_job(:'dying', 'w');
select jobq.fail(:'dying', 1, 'x', 'REFUSED', retryable => false);

select results_eq(
    'select item ->> ''kind'' from jobq_http.page_jobs(max_jobs => 2)',
    $$ values ('dying'), ('k1') $$,
    'the newest come first, archived or not'
);
select is(
    (select count(*) from jobq_http.page_jobs(max_jobs => 8) where cursor is null), 1::bigint,
    'the last of all has no cursor'
);
select is(
    (select count(*) from jobq_http.page_jobs(max_jobs => 7) where cursor is null), 0::bigint,
    'the last of a page has one while others follow'
);
select results_eq(
    $$
        select (n.item ->> 'job_id')::uuid
        from (select cursor from jobq_http.page_jobs(max_jobs => 3) offset 2) as p
        cross join lateral jobq_http.page_jobs(before => p.cursor) as n
    $$,
    'select job_id from jobq.job order by job_id desc offset 3',
    'the next page begins after the cursor'
);
select is(
    (select count(*) from jobq_http.page_jobs(states => '{dead}')), 1::bigint,
    'states choose'
);
select is((select count(*) from jobq_http.page_jobs(kind => 'k1')), 4::bigint, 'kinds choose');
select is(
    (select count(*) from jobq_http.page_jobs(metadata => '{"n": 3}')), 1::bigint,
    'metadata chooses'
);
select is(
    (select count(*) from jobq_http.page_jobs(created_before => now() - interval '1 h')),
    0::bigint, 'times choose'
);
select results_eq(
    $$
        select p.item ->> 'kind'
        from unnest('{REFUSED,OTHER}'::text[]) as c (code)
        cross join lateral jobq_http.page_jobs(error_code => c.code) as p
    $$,
    $$ values ('dying') $$, 'the code of the last error chooses'
);
select throws_ok('select jobq_http.page_jobs(states => ''{lost}'')', '22023', null,
    'a state that there is not is refused');

-- What a page reads does not grow with the pages before it: the least of three times, since
-- a role that another session makes meanwhile has plans made anew; amid the ids, since at their
-- ends the planner looks past what other tests have left.
create function pg_temp.buffers(statement text)
returns bigint
language plpgsql
as $$
declare
    _plan json;
    _least bigint;
begin
    execute statement;
    for _ in 1 .. 3 loop
        execute 'explain (analyze, buffers, format json) ' || statement into _plan;
        _least := least(_least, (_plan #>> '{0,Plan,Shared Hit Blocks}')::bigint
            + (_plan #>> '{0,Plan,Shared Read Blocks}')::bigint);
    end loop;
    return _least;
end
$$;
insert into jobq_private.job_archive (
    job_id, kind, queue, lease, timeout, max_attempts, attempt, state, previous_state,
    finished_at
)
select
    jobq_private.new_id(0), 'many', 'default', '30 s', '1 min', 5, 1, 'succeeded', 'running',
    now()
from generate_series(1, 20000);
analyze jobq_private.job_archive;
select job_id as late
from jobq_private.job_archive
where kind = 'many'
order by job_id
offset 10000 limit 1 \gset
select cmp_ok(
    pg_temp.buffers(format('select * from jobq_http.page_jobs(before => %L)', :'late')),
    '<',
    pg_temp.buffers('select * from jobq_http.page_jobs()') + 20,
    'the 200th page reads no more than the first'
);

select * from finish();
rollback;
