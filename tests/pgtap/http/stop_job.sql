-- What stop_job(), cancel_execution(), revise_job(), show_job() and submit_job() promise.
begin;
select plan(21);

select item ->> 'job_id' as job, created from jobq_http.submit_job(
    '{"kind": "k", "payload": {"n": 1.10}, "idempotency_key": "once"}') \gset
select is(:'created'::boolean, true, 'a submitted job is created');
select is(
    (select created from jobq_http.submit_job('{"kind": "k", "idempotency_key": "once"}')), false,
    'and not again under its key'
);
select is(jobq_http.show_job(:'job') #>> '{payload,n}', '1.10', 'a payload is shown as it is');
select jobq.put_endpoint('e', 'HTTP', '{"url": "https://a.example"}') as doc \gset
select jobq.enqueue('e', '{"n": 1}') as delivery \gset
select is(
    array(
        select k from json_object_keys(jobq_http.show_job(j.job_id, j.vocabulary)) as k
        where k in ('payload', 'input')
    ), array[j.name], format('%s in the vocabulary %s has its %s', j.what, j.vocabulary, j.name)
)
from (
    values (:'delivery'::uuid, 'a delivery', null, 'input'),
    (:'delivery', 'a delivery', 'kind', 'payload'),
    (:'job', 'a job', null, 'payload'), (:'job', 'a job', 'endpoint', 'input')
) as j (job_id, what, vocabulary, name);
select throws_ok(
    format('select jobq_http.show_job(%L, ''both'')', :'job'), '22023', null, 'there is no other'
);
select is(jobq_http.show_job(:'job') #>> '{execution,status}', 'QUEUED', 'it waits');
select is(jobq_http.show_job(:'job') ->> 'trigger', 'IMMEDIATE', 'at once');

select is(
    jobq_http.cancel_execution(:'job') ->> 'status', 'CANCELLED',
    'an execution that waits is cancelled'
);
select ok(jobq_http.cancel_execution(:'job') is null, 'and then no more');
select jobq.enqueue('k') as running \gset
select from jobq.claim_job(:'running', 'w');
select ok(jobq_http.cancel_execution(:'running') is null, 'one that runs is left alone');
select is(
    (select cancel_requested_at from jobq.get_job(:'running')), null,
    'and its worker is not asked'
);
select is(jobq_http.stop_job(:'running'), 'cancel_requested', 'stop_job asks it');
select throws_ok('select jobq_http.stop_job(gen_random_uuid())', 'JQ001', null,
    'a job that there is not cannot be stopped');

select jobq.create_schedule('weekly', 'k', '0 9 * * MON', time_zone => 'UTC') as schedule
\gset
select is(jobq_http.show_job(:'schedule') ->> 'trigger', 'CRON', 'a schedule is a job too');
select is(
    jobq_http.revise_job(:'schedule', '{"cron": "0 10 * * MON"}') ->> 'version', '2',
    'it can be revised'
);
select ok(jobq_http.revise_job(:'running', '{}') is null, 'a one-shot job cannot');
select is(jobq_http.stop_job(:'schedule'), 'already_finished', 'an old version is over');
select is(
    jobq_http.stop_job((select schedule_id from jobq_internal.get_schedule('weekly'))), 'retired',
    'the one in force is retired'
);

select * from finish();
rollback;
