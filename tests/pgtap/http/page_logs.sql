-- What jobq_http.page_logs() promises: every line once, in pages, in its order.
begin;
select plan(7);

create function pg_temp.buffers(statement text)
returns bigint
language plpgsql
as $$
declare
    _plan json;
begin
    execute statement;
    execute 'explain (analyze, buffers, format json) ' || statement into _plan;
    return (_plan #>> '{0,Plan,Shared Hit Blocks}')::bigint
        + (_plan #>> '{0,Plan,Shared Read Blocks}')::bigint;
end
$$;

select jobq.enqueue('talkative') as job_id \gset
select from jobq.claim_job(:'job_id', 'w');
select count(jobq.log(:'job_id', 1, 'INFO', n::text)) from generate_series(1, 20000) as n \gset
analyze jobq_private.job_log;

select results_eq(
    format('select item ->> ''message'' from jobq_http.page_logs(%L, max_lines => 2)', :'job_id'),
    $$ values ('1'), ('2') $$,
    'the oldest come first'
);
select cursor as third
from jobq_http.page_logs(:'job_id', max_lines => 3) offset 2 \gset
select is(
    (select item ->> 'message' from jobq_http.page_logs(:'job_id', :third, 1)), '4',
    'the next page begins after the cursor'
);
select cursor as late
from jobq_http.page_logs(:'job_id', :third + 18996, 1) \gset
select results_eq(
    format($$
        select count(*), count(cursor) from jobq_http.page_logs(%L, %s, 1000)
    $$, :'job_id', :late),
    'values (1000::bigint, 999::bigint)',
    'the last of all has no cursor'
);
select results_eq(
    format(
        'select item ->> ''message'' from jobq_http.page_logs(%L, max_lines => 2, before => %s)',
        :'job_id', '9223372036854775807'
    ),
    $$ values ('20000'), ('19999') $$,
    'or the newest come first'
);
select cursor as newer
from jobq_http.page_logs(:'job_id', null, 1, :third) \gset
select results_eq(
    format(
        'select item ->> ''message'', cursor from jobq_http.page_logs(%L, null, 9, %s)',
        :'job_id', :newer
    ),
    $$ values ('1', null::bigint) $$,
    'and the pages lead back to the first'
);
select cmp_ok(
    greatest(
        pg_temp.buffers(format(
            'select * from jobq_http.page_logs(%L, before => 9223372036854775807)', :'job_id'
        )),
        pg_temp.buffers(format('select * from jobq_http.page_logs(%L)', :'job_id')),
        pg_temp.buffers(format('select * from jobq_http.page_logs(%L, %s)', :'job_id', :late))
    ),
    '<', 60::bigint,
    'a page of 20,000 lines, the first or a late one, reads but a few blocks'
);
select throws_ok(
    'select jobq_http.page_logs(jobq_private.new_id(0))', 'JQ001', null,
    'a job that is not there has no log'
);

select * from finish();
rollback;
