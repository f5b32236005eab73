-- What jobq_http.show_jobs() promises: what fits, how many, and where a look ended.
begin;
select plan(26);

select jobq.enqueue('k' || n % 2, queue => 'q' || n % 2, metadata => jsonb_build_object('n', n))
from generate_series(1, 6) as n;
select jobq.enqueue('dying', '{"secret": 1}') as dying \gset
select from jobq.claim_job(:'dying', 'w9');
select jobq.fail(:'dying', 1, 'no such host', 'UNREACHABLE', retryable => false);
select jobq.enqueue('held') as held \gset
select from jobq.claim_job(:'held', 'w8');
select jobq.enqueue('done') as done \gset
select from jobq.claim_job(:'done', 'w7');
select jobq.complete(:'done', 1);

create function pg_temp.kinds(document json)
returns text language sql as $$
    select string_agg(i ->> 'kind', ',') from json_array_elements(document -> 'items') as i
$$;

select is(pg_temp.kinds(jobq_http.show_jobs(max_jobs => 4)), 'done,held,dying,k0',
    'the newest come first, live or archived');
select is(jobq_http.show_jobs(max_jobs => 4) ->> 'matched', '9', 'all that fit are counted');
select is(jobq_http.show_jobs() ->> 'is_all', 'true', 'and nothing was left to look at');
select is(
    pg_temp.kinds(jobq_http.show_jobs(
        before => (jobq_http.show_jobs(max_jobs => 3) ->> 'cursor')::uuid, max_jobs => 2
    )), 'k0,k1', 'the next page begins after the cursor'
);
select is(jobq_http.show_jobs(max_jobs => 9) ->> 'cursor', null, 'the last page has none');
select is(pg_temp.kinds(jobq_http.show_jobs('{dead}')), 'dying', 'the dead are found');
select is(pg_temp.kinds(jobq_http.show_jobs('{running}')), 'held', 'and what runs');
select is(pg_temp.kinds(jobq_http.show_jobs('{succeeded,running}')), 'done,held', 'and both kinds');
select is(jobq_http.show_jobs('{queued}', queue => 'q1') ->> 'matched', '3', 'queues choose');
select is(jobq_http.show_jobs(kind => 'k1', metadata => '{"n": 3}') ->> 'matched', '1',
    'kinds and metadata choose');
select is(jobq_http.show_jobs(error_code => 'UNREACHABLE') ->> 'matched', '1', 'errors choose');
select is(pg_temp.kinds(jobq_http.show_jobs(worker => 'w9')), 'dying', 'workers choose');
select is(jobq_http.show_jobs(created_before => now() - interval '1 h') ->> 'matched', '0',
    'times choose');
select is(jobq_http.show_jobs(kind => 'none', max_looked => 4) ->> 'is_all', 'false',
    'a look that finds nothing ends too');
select is(
    jobq_http.show_jobs(
        kind => 'k1', max_looked => 4, before => (
            jobq_http.show_jobs(kind => 'none', max_looked => 4) ->> 'cursor'
        )::uuid
    ) ->> 'matched', '2', 'and says where to go on'
);
select is(
    jobq_http.show_jobs('{dead,running}', max_jobs => 1, with_ids => true) -> 'job_ids' #>> '{}',
    format('["%s","%s"]', :'held', :'dying'), 'the ids of all that fit can be had'
);
select is(jobq_http.show_jobs() ->> 'job_ids', null, 'or not');
select is(pg_temp.kinds(jobq_http.show_jobs(search => right(:'done', 6))), 'done',
    'the end of an id finds its job');
select is(pg_temp.kinds(jobq_http.show_jobs(search => upper(left(:'done', 36)))), 'done',
    'so does the whole id, in any case');
select jobq.enqueue('sought', '{"user": {"id": 7}}', idempotency_key => 'order-17',
    concurrency_key => 'tenant%') as sought \gset
select is(pg_temp.kinds(jobq_http.show_jobs(search => 'order-17')), 'sought',
    'an idempotency key finds its job');
select is(pg_temp.kinds(jobq_http.show_jobs(search => 'tenant%')), 'sought',
    'a concurrency key finds its jobs');
select is(pg_temp.kinds(jobq_http.show_jobs(payload => '{"user": {"id": 7}}')), 'sought',
    'a payload that contains an object is found');
select is(pg_temp.kinds(jobq_http.show_jobs(search => left(upper(
    (select j.last_error from jobq.job as j where j.kind = 'dying')), 8))), 'dying',
    'a part of the last error finds its job');
select is(pg_temp.kinds(jobq_http.show_jobs('{dead,queued}', job_ids => array[
    :'sought', :'done']::uuid[])), 'sought', 'ids choose, together with states');
select unalike(jobq_http.show_jobs()::text, '%secret%', 'payloads are not shown');
select throws_ok('select jobq_http.show_jobs(''{lost}'')', '22023', null,
    'a state that there is not is refused');

select * from finish();
rollback;
