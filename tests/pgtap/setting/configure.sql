-- What jobq.configure() promises; settings.sql shows what its settings do.
begin;
select plan(25);

create temporary table before as select * from jobq_private.setting;
select jobq.configure();
select results_eq(
    'select * from jobq_private.setting', 'select * from before',
    'without arguments nothing changes'
);
select jobq.configure(
    priority => 1, max_attempts => 2, timeout => '3 s', lease => '4 s',
    retry_preset => 'delivery', dedup => 'enqueue', reuse_key_after_failure => true,
    max_expiries => 5, max_payload_bytes => 2048, max_payload_depth => 7,
    retention => '8 days', key_retention => '9 h', redact_emails => true
);
create temporary table after as select * from jobq_private.setting;
select results_eq(
    'select * from after',
    $$
    values (true, 1::smallint, 2, interval '3 s', interval '4 s', 'delivery', 'enqueue',
        true,
        5, 2048, 7, interval '8 days', interval '9 h', true, 0)
    $$,
    'every default can be set'
);
select jobq.configure(max_attempts => 3);
select results_eq(
    'select max_attempts, lease, dedup from jobq_private.setting',
    $$ values (3, interval '4 s', 'enqueue') $$,
    'arguments left out keep theirs'
);
select jobq.configure(reuse_key_after_failure => false);
select is(
    (select s.reuse_key_after_failure from jobq_private.setting as s), false,
    'false is not the same as left out'
);
select is(
    refusal('select jobq.configure(' || a.arguments || ')'), a.refusal,
    format('configure(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('priority => 32768', '22023 INVALID_ARGUMENT'),
    ('max_attempts => 0', '22023 INVALID_ARGUMENT'),
    ('max_attempts => 10001', '22023 INVALID_ARGUMENT'),
    ('timeout => ''0''', '22023 INVALID_ARGUMENT'),
    ('timeout => ''366 days''', '22023 INVALID_ARGUMENT'),
    ('lease => ''0.5 s''', '22023 INVALID_ARGUMENT'),
    ('lease => ''2 days''', '22023 INVALID_ARGUMENT'),
    ('retry_preset => ''never''', '22023 INVALID_ARGUMENT'),
    ('dedup => ''drop''', '22023 INVALID_ARGUMENT'),
    ('max_expiries => 0', '22023 INVALID_ARGUMENT'),
    ('max_payload_bytes => 1023', '22023 INVALID_ARGUMENT'),
    ('max_payload_bytes => 104857601', '22023 INVALID_ARGUMENT'),
    ('max_payload_depth => 0', '22023 INVALID_ARGUMENT'),
    ('max_payload_depth => 513', '22023 INVALID_ARGUMENT'),
    ('retention => ''23 h''', '22023 INVALID_ARGUMENT'),
    ('retention => ''36501 days''', '22023 INVALID_ARGUMENT'),
    ('key_retention => ''59 min''', '22023 INVALID_ARGUMENT'),
    ('retention => ''1 day'', key_retention => ''2 days''', '22023 INVALID_ARGUMENT')
) as a (arguments, refusal);
select results_eq(
    'select max_attempts, retention from jobq_private.setting',
    $$ values (3, interval '8 days') $$, 'a refused change changes nothing'
);

-- Changed by hand, past all triggers, in a transaction that has enqueued before
select jobq.enqueue('plain');
set local session_replication_role = replica;
update jobq_private.setting
set priority = -7, max_attempts = 11, timeout = '1 day 2 h 3.004 s', lease = '7 s', max_payload_bytes = 2048;
insert into jobq_private.kind (kind, timeout) values ('ruled', '7 s');
insert into jobq_private.queue (queue, lease) values ('q', '8 s');
set local session_replication_role = origin;
create temporary table stored (job_id uuid, nth integer);
insert into stored values
(jobq.enqueue('plain'), 1), (jobq.enqueue('ruled', queue => 'q'), 2),
(jobq.enqueue('ruled', queue => 'q', idempotency_key => 'k'), 3);
insert into stored
select m.job_id, 3 + m.ordinal from jobq.enqueue_many('[{"kind": "plain"}, {"kind": "ruled", "queue": "q"}]') as m;
select results_eq(
    $$
    select s.nth, j.priority::integer, j.max_attempts, j.timeout, j.lease
    from stored as s
    join jobq_private.job as j on j.job_id = s.job_id
    order by s.nth
    $$,
    $$
    values (1, -7, 11, interval '26:00:03.004', interval '7 s'), (2, -7, 11, '7 s', '8 s'),
    (3, -7, 11, '7 s', '8 s'), (4, -7, 11, '26:00:03.004', '7 s'), (5, -7, 11, '7 s', '8 s')
    $$,
    'whatever is written to the settings holds for the next job'
);
select throws_ok(
    $$ select jobq.enqueue('plain', to_jsonb(repeat('a', 2100))) $$, 'JQ005', null,
    'its limits too'
);

select * from finish();
rollback;
