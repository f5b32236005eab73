-- What jobq.configure() promises; settings.sql shows what its settings do.
begin;
select plan(25);

create function pg_temp.refusal(statement text)
returns text
language plpgsql
as $$
declare
    _code text;
begin
    execute statement;
    return 'none';
exception
    when others then
        get stacked diagnostics _code = constraint_name;
        return sqlstate || ' ' || _code;
end
$$;

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
        5, 2048, 7, interval '8 days', interval '9 h', true)
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
    pg_temp.refusal('select jobq.configure(' || a.arguments || ')'), a.refusal,
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

create temporary view written as
select
    d.priority, d.max_attempts, d.timeout, d.lease, d.dedup, d.reuse_key_after_failure,
    d.max_payload_bytes, d.max_payload_depth
from jobq_private.defaults() as d;
create temporary view said as
select
    g.priority::integer, g.max_attempts, g.timeout, g.lease, g.dedup, g.reuse_key_after_failure,
    g.max_payload_bytes, g.max_payload_depth
from jobq_private.setting as g;
select results_eq('select * from written', 'select * from said', 'what enqueue() reads is the same');
update jobq_private.setting
set
    priority = -7, max_attempts = 11, timeout = '1 day 2 h 3.004 s', lease = '7 s',
    dedup = 'replace', reuse_key_after_failure = true, max_payload_bytes = 2048,
    max_payload_depth = 3;
select results_eq('select * from written', 'select * from said', 'also after a change by hand');

select * from finish();
rollback;
