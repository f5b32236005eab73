-- What send_message() and wait_any() promise.
begin;
select plan(28);

create function pg_temp.wait(id uuid, attempt integer, wait text, events text[], most interval default null)
returns text
language sql
as $$
    select concat_ws(' ', w.outcome, w.event, w.payload)
    from jobq.wait_any(id, attempt, wait, events, most) as w
$$;
create function pg_temp.message(id uuid, name text, n integer)
returns text[]
language sql
as $$
    select array[format('message:%s:%s:%s', id, name, lpad(n::text, 9, '0'))]
$$;

select jobq.enqueue('agent') as job_id \gset
select jobq.enqueue('agent') as other_id \gset
select is(jobq.send_message(:'job_id', 'chat', '"one"'), 1, 'messages are numbered');
select is(jobq.send_message(:'job_id', 'chat', '"two"'), 2, 'in their order');
select is(jobq.send_message(:'job_id', 'chat:1', '"x"'), 1, 'by name');
select is(jobq.send_message(:'other_id', 'chat', '"y"'), 1, 'and by job');
select from jobq.claim_job(:'job_id', 'w');
select is(
    pg_temp.wait(:'job_id', 1, 'r1', pg_temp.message(:'job_id', 'chat', 1)),
    format('arrived message:%s:chat:000000001 "one"', :'job_id'),
    'the first is received'
);
select is(
    pg_temp.wait(:'job_id', 1, 'r2', pg_temp.message(:'job_id', 'chat', 2)),
    format('arrived message:%s:chat:000000002 "two"', :'job_id'),
    'then the second'
);
select is(
    pg_temp.wait(:'job_id', 1, 'r1', pg_temp.message(:'job_id', 'chat', 1)),
    format('arrived message:%s:chat:000000001 "one"', :'job_id'),
    'what was received is recorded'
);
select is(
    pg_temp.wait(:'job_id', 1, 'r3', pg_temp.message(:'job_id', 'chat', 3), '1 h'), 'waiting',
    'the next one has not come'
);
select is(jobq.send_message(:'job_id', 'chat', '"three"'), 3, 'when it is sent');
select from jobq.claim_job(:'job_id', 'w');
select is(
    pg_temp.wait(:'job_id', 2, 'r3', pg_temp.message(:'job_id', 'chat', 3), '1 h'),
    format('arrived message:%s:chat:000000003 "three"', :'job_id'), 'the job is due and gets it'
);

-- The first of several.
select is(
    pg_temp.wait(:'job_id', 2, 'any', '{approved,refused}', '1 h'), 'waiting', 'it waits for two'
);
select jobq.signal(:'job_id', 'refused', '"no"');
select jobq.emit('approved', '"yes"');
select from jobq.claim_job(:'job_id', 'w');
select is(
    pg_temp.wait(:'job_id', 3, 'any', '{approved,refused}', '1 h'),
    (select format('arrived %s %s', e.event, e.payload) from jobq_private.event as e
    where e.event in ('approved', 'refused') order by e.emitted_at, e.event limit 1),
    'the first one is returned'
);
select is(
    (select count(*) from jobq_private.waiter), 0::bigint, 'the job waits for none of them any more'
);
select is(
    pg_temp.wait(:'job_id', 3, 'again', '{refused}'), 'arrived refused "no"',
    'the other one is there for another wait'
);
select is(
    pg_temp.wait(:'job_id', 3, 'late', '{never,neither}', '0'), 'timed_out null',
    'a wait can time out'
);

-- A called job is one of several.
select child_id from jobq.start_children(:'job_id', 3, '[{"name": "c", "kind": "tool"}]') \gset
select from jobq.wait_any(
    :'job_id', 3, 'tool or stop', array['job_ended:' || :'child_id', 'stop']
);
select from jobq.claim_job(:'child_id', 'w');
select jobq.complete(:'child_id', 1, '5');
select jobq_private.resolve();
select from jobq.claim_job(:'job_id', 'w');
select is(
    (select payload ->> 'result' from jobq.wait_any(
        :'job_id', 4, 'tool or stop', array['job_ended:' || :'child_id', 'stop']
    )), '5', 'the end of a called job can come first'
);

-- A copy goes on after the messages that the job has received.
select jobq.fork(:'job_id') as fork_id \gset
select is(jobq.send_message(:'fork_id', 'chat', '"four"'), 4, 'a fork has received them too');
select from jobq.claim_job(:'fork_id', 'w');
select is(
    pg_temp.wait(:'fork_id', 1, 'r4', pg_temp.message(:'fork_id', 'chat', 4)),
    format('arrived message:%s:chat:000000004 "four"', :'fork_id'), 'and receives the next'
);

-- Errors.
select from jobq.complete(:'job_id', 4);
select is(refusal(c.call), c.refusal, c.call)
from (
    values
    (format('select jobq.send_message(%L, ''chat'')', :'job_id'), 'JQ002 ILLEGAL_STATE'),
    (format('select jobq.send_message(%L, repeat(''x'', 201))', :'other_id'), '22023 INVALID_ARGUMENT'),
    (format('select jobq.signal(%L, ''message:x'')', :'other_id'), '22023 INVALID_ARGUMENT'),
    ('select jobq.emit(''job_ended:x'')', '22023 INVALID_ARGUMENT'),
    (format('select jobq.wait_any(%L, 5, ''a'', ''{a}'')', :'job_id'), 'JQ003 LEASE_LOST'),
    (format('select jobq.wait_any(%L, 5, ''a'', ''{}'')', :'job_id'), '22023 INVALID_ARGUMENT'),
    (format('select jobq.wait_any(%L, 5, ''a'', ''{{a},{b}}'')', :'job_id'), '22023 INVALID_ARGUMENT'),
    (format('select jobq.wait_any(%L, 5, null, ''{a}'')', :'job_id'), '22004 NULL_ARGUMENT'),
    (format('select jobq.wait_for(%L, 1, ''job_ended:%s'')', :'fork_id', :'other_id'),
        '22023 INVALID_ARGUMENT'),
    (format('select jobq.wait_any(%L, 1, ''a'', ''{job_ended:x,a}'')', :'fork_id'),
        '22023 INVALID_ARGUMENT')
) as c (call, refusal);

select * from finish();
rollback;
