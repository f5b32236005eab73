-- What jobq.page_jobs() promises: every job once, in pages, newest first.
begin;
select plan(9);

select jobq.enqueue('k' || n % 2, metadata => jsonb_build_object('n', n))
from generate_series(1, 7) as n;
select jobq.enqueue('dying') as dying \gset
select from jobq.claim_job(:'dying', 'w');
select jobq.fail(:'dying', 1, 'x', retryable => false);

select results_eq(
    'select item ->> ''kind'' from jobq.page_jobs(max_jobs => 2)',
    $$ values ('dying'), ('k1') $$,
    'the newest come first, archived or not'
);
select is(
    (select count(*) from jobq.page_jobs(max_jobs => 8) where cursor is null), 1::bigint,
    'the last of all has no cursor'
);
select is(
    (select count(*) from jobq.page_jobs(max_jobs => 7) where cursor is null), 0::bigint,
    'the last of a page has one while others follow'
);
select results_eq(
    $$
        select (n.item ->> 'job_id')::uuid
        from (select cursor from jobq.page_jobs(max_jobs => 3) offset 2) as p
        cross join lateral jobq.page_jobs(before => p.cursor) as n
    $$,
    'select job_id from jobq.job order by job_id desc offset 3',
    'the next page begins after the cursor'
);
select is(
    (select count(*) from jobq.page_jobs(states => '{dead}')), 1::bigint,
    'states choose'
);
select is((select count(*) from jobq.page_jobs(kind => 'k1')), 4::bigint, 'kinds choose');
select is(
    (select count(*) from jobq.page_jobs(metadata => '{"n": 3}')), 1::bigint,
    'metadata chooses'
);
select is(
    (select count(*) from jobq.page_jobs(created_before => now() - interval '1 h')),
    0::bigint, 'times choose'
);
select throws_ok('select jobq.page_jobs(states => ''{lost}'')', '22023', null,
    'a state that there is not is refused');

select * from finish();
rollback;
