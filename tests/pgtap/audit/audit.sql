-- What operators do leaves a row that nobody can take away.
-- Needs more than the core.
begin;
select plan(21);

create function pg_temp.noted(since bigint)
returns table (action text, subject text, reason text)
language sql
as $$
    select a.action, a.subject, a.reason from jobq.audit as a
    where a.audit_id > since order by a.audit_id
$$;

select coalesce(max(audit_id), 0) as start from jobq.audit \gset
select jobq.enqueue('work', queue => 'a') as waits \gset
select jobq.enqueue('work', queue => 'b') as runs \gset
select from jobq.claim('{b}', 'w');
select is_empty(
    format('select * from pg_temp.noted(%s)', :start),
    'what producers and workers do is not noted'
);
select jobq.cancel(:'waits', 'not wanted');
select jobq.cancel(:'runs', 'nor this');
select results_eq(
    format('select * from pg_temp.noted(%s)', :start),
    format(
        'values (''cancel'', %L, ''not wanted''), (''cancel'', %L, ''nor this'')',
        :'waits', :'runs'
    ),
    'cancel is noted, with its reason'
);

select max(audit_id) as start from jobq.audit \gset
select jobq.redrive(:'waits');
update jobq.job set state = 'cancelled', cancel_reason = 'by hand' where job_id = :'waits';
update jobq.job set state = 'queued' where job_id = :'waits';
select results_eq(
    format('select * from pg_temp.noted(%s)', :start),
    format(
        'values (''redrive'', %1$L, null), (''update to cancelled'', %1$L, ''by hand''),
        (''redrive'', %1$L, null)', :'waits'
    ),
    'redrive is noted, and so is what is done through the view'
);

select jobq.enqueue('work', queue => 'c') as dies \gset
select from jobq.claim('{c}', 'w');
select jobq.fail(:'dies', 1, 'x', retryable => false);
select max(audit_id) as start from jobq.audit \gset
select from jobq.redrive_many('c');
select results_eq(
    format('select * from pg_temp.noted(%s)', :start),
    format('values (''redrive'', %L, null::text)', :'dies'),
    'redrive_many notes each job'
);

select max(audit_id) as start from jobq.audit \gset
select jobq.pause_queue('a', 'repairs');
select jobq.pause_queue('a', 'still');
select jobq.resume_queue('a');
select jobq.resume_queue('a');
select jobq.put_queue('a', priority => 1);
select results_eq(
    format('select * from pg_temp.noted(%s)', :start),
    $$ values ('pause_queue', 'a', 'repairs'), ('resume_queue', 'a', null),
    ('put_queue', 'a', 'priority 1') $$,
    'pausing and resuming are noted where they change something'
);

select max(audit_id) as start from jobq.audit \gset
select jobq.put_kind('k', queue => 'm', max_running => 2, version => 3);
select jobq.put_kind('k', queue => 'm', max_running => 2, version => 4);
select jobq.put_kind('k', queue => 'm', max_running => 2);
select jobq.put_kind('k', queue => 'm', version => 4);
select jobq.put_kind('k', queue => 'm');
select jobq.delete_kind('k');
select jobq.put_queue('m');
select jobq.put_queue('m', max_depth => 5, timeout => '5 s');
select jobq.put_queue('m', max_depth => 5, timeout => '5 s');
select jobq.delete_queue('m');
select jobq.configure(max_attempts => 7, retention => '30 days');
select results_eq(
    format('select * from pg_temp.noted(%s)', :start),
    $$
    values ('put_kind', 'k', 'max_running 2, queue m, version 3'), ('put_kind', 'k', 'version 4'),
    ('put_kind', 'k', 'max_running none'), ('delete_kind', 'k', null), ('put_queue', 'm', null),
    ('put_queue', 'm', 'max_depth 5, timeout 00:00:05'), ('delete_queue', 'm', null),
    ('configure', 'settings', 'max_attempts 7')
    $$,
    'declarations of kinds, queues and defaults are noted where they change something'
);

select max(audit_id) as start from jobq.audit \gset
select jobq.create_schedule('s', 'k', '0 7 * * *');
select jobq.create_schedule('s', 'k', '0 7 * * *');
select jobq.update_schedule('s', '{"cron": "0 8 * * *"}');
select jobq.pause_schedule('s', 'August');
select jobq.pause_schedule('s', 'August');
select jobq.resume_schedule('s');
select jobq.resume_schedule('s');
select jobq.retire_schedule('s');
select jobq.retire_schedule('s');
select results_eq(
    format('select * from pg_temp.noted(%s)', :start),
    $$
    values ('put_schedule', 's', 'version 1'), ('put_schedule', 's', 'version 2'),
    ('pause_schedule', 's', 'August'), ('resume_schedule', 's', null),
    ('retire_schedule', 's', null)
    $$,
    'so are changes of schedules'
);

select max(audit_id) as start from jobq.audit \gset
select jobq.put_endpoint('hook', 'HTTP', '{"url": "http://a"}') \g /dev/null
select jobq.delete_definition('endpoint', 'hook');
select results_eq(
    format('select * from pg_temp.noted(%s)', :start),
    $$ values ('put_endpoint', 'hook', 'version 1'), ('delete_endpoint', 'hook', null) $$,
    'and an endpoint by its name alone, not by its kind too'
);

select max(audit_id) as start from jobq.audit \gset
select jobq_http.create_api_key('k', sha256('x'), 'jobq_x', '{read}');
select from jobq_http.authenticate(sha256('x'));
select jobq_http.revoke_api_key('k');
select results_eq(
    format('select * from pg_temp.noted(%s)', :start),
    $$ values ('create_api_key', 'k', null), ('revoke_api_key', 'k', null) $$,
    'changes of API keys are noted, and their use is not'
);

select max(audit_id) as start from jobq.audit \gset
select jobq.put_secret('s', decode(repeat('ab', 40), 'hex'), 'key-1') \g /dev/null
select jobq.delete_definition('secret', 's');
select results_eq(
    format('select * from pg_temp.noted(%s)', :start),
    $$ values ('put_secret', 's', null), ('delete_secret', 's', null) $$,
    'changes of secrets are noted by name'
);

set local role jobq_operator;
select is(
    (select count(*) from jobq.audit where actor <> session_user), 0::bigint,
    'the actor is who has logged in, whatever role it plays'
);
reset role;
select ok(
    bool_and(acted_at between now() and clock_timestamp()), 'the moment is the clock''s'
)
from jobq.audit;

select jobq_http.act_for('API key night');
select jobq.cancel(:'dies', 'as asked');
select results_eq(
    format('select actor = session_user, acting_for, reason from jobq.audit
        where subject = %L and action = ''cancel''', :'dies'),
    $$ values (true, 'API key night', 'as asked') $$,
    'whom the log-in says that it acts for stands beside it'
);
select ok(
    bool_and(acting_for is null), 'and does not stand where it was not said'
)
from jobq.audit
where action <> 'cancel';

select is(refusal(a.statement), a.refusal, a.statement)
from (
    values
    ('select jobq_http.act_for(null)', '22004 NULL_ARGUMENT'),
    ('select jobq_http.act_for('''')', '22023 INVALID_ARGUMENT'),
    ('select jobq_http.act_for(repeat(''x'', 257))', '22023 INVALID_ARGUMENT'),
    ('update jobq_private.audit set actor = ''x''', 'JQ002 IMMUTABLE'),
    ('delete from jobq_private.audit', 'JQ002 IMMUTABLE'),
    ('truncate jobq_private.audit', 'JQ002 IMMUTABLE')
) as a (statement, refusal);
savepoint before;
select jobq.cancel(:'waits');
rollback to before;
select is(
    (select count(*) from jobq.audit where subject = :'waits' and action = 'cancel'),
    1::bigint, 'what is rolled back is not noted'
);

select * from finish();
rollback;
