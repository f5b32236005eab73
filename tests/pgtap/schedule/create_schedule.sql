-- What jobq.create_schedule() promises.
begin;
select plan(72);

-- Defaults
select jobq.create_schedule('report', 'make_report', '0 9 * * MON', time_zone => 'Asia/Kolkata')
as report \gset
select results_eq(
    $$
    select s.version, s.status, s.kind, s.queue, s.payload, s.metadata, s.missed, s.catch_up,
        s.dedup, s.dedup_key, s.gap, s.fold, s.jitter, s.last_tick_at, s.region
    from jobq_internal.get_schedule('report') as s
    $$,
    $$
    values (1, 'active' collate "C", 'make_report', null::text, '{}'::jsonb, '{}'::jsonb,
        'all', null::interval, 'enqueue', null::text, 'auto', 'auto', '0'::interval,
        null::timestamptz, 'default')
    $$,
    'by cron, all missed slots are made up for, and firings may overlap'
);
select is(
    (jobq_internal.get_schedule('report')).next_run_at,
    jobq.next_tick('0 9 * * MON', 'Asia/Kolkata'),
    'the first slot is the next firing of its expression in its zone'
);
select jobq.create_schedule('poll', 'poll_api', every => '90 s') as poll \gset
select results_eq(
    $$
    select s.cron, s.every, s.from_completion, s.missed, s.dedup, s.dedup_key,
        s.next_run_at between now() + interval '90 s' and clock_timestamp() + interval '90 s'
    from jobq_internal.get_schedule('poll') as s
    $$,
    $$ values (null::text, '90 s'::interval, false, 'latest', 'skip', 'poll', true) $$,
    'by interval, the latest slot makes up for those missed, firings do not overlap, and
    the first comes after one interval'
);

-- Idempotent upsert
select is(
    jobq.create_schedule('report', 'make_report', ' 0 9  * * MON', time_zone => 'Asia/Kolkata'),
    :'report'::uuid, 'the same definition is the same version, whatever its spaces'
);
select is(
    jobq.create_schedule('poll', 'poll_api', every => '1 min 30 s', dedup => 'skip',
        dedup_key => 'poll', missed => 'latest', payload => null, metadata => '{}'),
    :'poll'::uuid, 'a default that is written out changes nothing'
);
select isnt(
    jobq.create_schedule('report', 'make_report', '0 10 * * MON', time_zone => 'Asia/Kolkata'),
    :'report'::uuid, 'another definition is another version'
);
select results_eq(
    $$
    select v.version, v.status, v.cron, v.next_run_at is null, v.retired_at is null,
        v.previous_version_id is null, v.replaced_by_id is null
    from jobq_internal.list_schedule_versions('report') as v
    $$,
    $$
    values (2, 'active' collate "C", '0 10 * * MON', false, true, false, true),
    (1, 'retired', '0 9 * * MON', true, false, true, false)
    $$,
    'it takes over, and the old one is history'
);
select is(
    (jobq_internal.get_schedule('report')).previous_version_id, :'report'::uuid,
    'it names the version before it'
);
select is(
    (jobq_internal.get_schedule(:'report')).replaced_by_id,
    (jobq_internal.get_schedule('report')).schedule_id, 'and that one names it'
);
select is(
    (select count(*) from jobq_private.job as j), 0::bigint, 'declaring fires nothing'
);

-- Each part of a definition is compared
create temporary table part (argument text);
insert into part values
('cron => ''1 * * * *'''), ('time_zone => ''Europe/Paris'''), ('payload => ''{"a": 1}'''),
('queue => ''q'''), ('gap => ''skip'''), ('fold => ''both'''), ('missed => ''none'''),
('catch_up => ''1 h'''), ('dedup => ''skip'''), ('jitter => ''5 s'''),
('starts_at => ''2027-01-01 UTC'''), ('ends_at => ''2099-01-01 UTC'''), ('priority => 3'),
('max_attempts => 2'), ('timeout => ''7 s'''), ('metadata => ''{"b": 2}''');
create function pg_temp.declared(argument text)
returns uuid
language plpgsql
as $$
declare
    _id uuid;
begin
    execute format(
        'select jobq.create_schedule(''parts'', ''k'', %s%s)',
        case when argument not like 'cron%' then 'cron => ''0 * * * *''' || case
            when argument <> '' then ', ' else '' end else '' end,
        argument
    ) into _id;
    return _id;
end
$$;
select pg_temp.declared('') as plain \gset
select ok(
    pg_temp.declared('') <> pg_temp.declared(p.argument),
    format('%s makes another version', p.argument)
)
from part as p;
select is(
    (select max(v.version) from jobq_internal.list_schedule_versions('parts') as v), 32,
    'and each time back again, too'
);
select is(
    jobq.create_schedule('parts', 'k', every => '1 h')
    = jobq.create_schedule('parts', 'k', every => '1 h', from_completion => true), false,
    'counting from completion makes another version'
);

-- Bounds
select jobq.create_schedule('later', 'k', '0 9 * * *', starts_at => '2099-03-01 09:00 UTC');
select is(
    (jobq_internal.get_schedule('later')).next_run_at, '2099-03-01 09:00 UTC'::timestamptz,
    'a slot at starts_at is the first'
);
select jobq.create_schedule('beat', 'k', every => '7 min', starts_at => '2020-01-01 00:00 UTC');
select is(
    mod(extract(epoch from (jobq_internal.get_schedule('beat')).next_run_at
        - '2020-01-01 00:00 UTC'::timestamptz), 420), 0::numeric,
    'a fixed rate counts from starts_at'
);
select ok(
    (jobq_internal.get_schedule('beat')).next_run_at between now() and now() + interval '8 min',
    'and makes up for nothing before it was declared'
);
select jobq.create_schedule('over', 'k', '0 0 1 1 *', ends_at => '2026-01-01 00:00 UTC');
select is(
    (jobq_internal.get_schedule('over')).next_run_at, null,
    'a slot at ends_at is none: such a schedule has no next slot'
);
select is(
    jobq.create_schedule('over', 'k', '0 0 1 1 *', ends_at => '2026-01-01 00:00 UTC'),
    (jobq_internal.get_schedule('over')).schedule_id, 'nor another version when declared again'
);
select jobq.create_schedule('endless', 'k', '@daily', ends_at => 'infinity');
select is((jobq_internal.get_schedule('endless')).ends_at, null, 'infinity is no end');
select jobq.create_schedule('none', 'k', '@daily', missed => 'none');
select is(
    (jobq_internal.get_schedule('none')).catch_up, '1 min'::interval,
    'missed none forgives a minute'
);

-- Overlap
select jobq.put_kind('lonely', dedup => 'replace');
select jobq.create_schedule('keyed', 'lonely', '@daily', dedup_key => 'one at a time');
select results_eq(
    $$ select s.dedup, s.dedup_key from jobq_internal.get_schedule('keyed') as s $$,
    $$ values ('replace', 'one at a time') $$,
    'a dedup_key alone takes the strategy of the kind'
);
select jobq.create_schedule('named', 'k', '@daily', dedup => 'skip');
select is(
    (jobq_internal.get_schedule('named')).dedup_key, 'named', 'a strategy alone takes the name as key'
);

-- A name comes back
select jobq.retire_schedule('poll');
select isnt(
    jobq.create_schedule('poll', 'poll_api', every => '90 s'), :'poll'::uuid,
    'a retired name can be declared again'
);
select is((jobq_internal.get_schedule('poll')).version, 2, 'as the next version of the same history');

-- Refusals
select is(refusal(a.statement), a.code, format('%s: %s', a.statement, a.code))
from (
    values
    ('select jobq.create_schedule(null, ''k'', ''@daily'')', '22004 NULL_ARGUMENT'),
    ('select jobq.create_schedule(''x'', null, ''@daily'')', '22004 NULL_ARGUMENT'),
    ('select jobq.create_schedule('''', ''k'', ''@daily'')', '22023 INVALID_ARGUMENT'),
    (
        'select jobq.create_schedule(gen_random_uuid()::text, ''k'', ''@daily'')',
        '22023 INVALID_ARGUMENT'
    ),
    ('select jobq.create_schedule(''x'', ''k'')', '22023 INVALID_ARGUMENT'),
    (
        'select jobq.create_schedule(''x'', ''k'', ''@daily'', every => ''1 h'')',
        '22023 INVALID_ARGUMENT'
    ),
    (
        'select jobq.create_schedule(''x'', ''k'', ''@daily'', from_completion => true)',
        '22023 INVALID_ARGUMENT'
    ),
    ('select jobq.create_schedule(''x'', ''k'', ''0 0 30 2 *'')', 'JQ009 CRON_NEVER_FIRES'),
    ('select jobq.create_schedule(''x'', ''k'', ''61 * * * *'')', 'JQ009 INVALID_CRON'),
    (
        'select jobq.create_schedule(''x'', ''k'', ''@daily'', time_zone => ''Mars/Base'')',
        'JQ009 INVALID_TIME_ZONE'
    )
) as a (statement, code);
select is(
    refusal(format(
        'select jobq.create_schedule(''x'', ''k'', every => ''1 h'', %s)', a.argument
    )),
    a.code, format('%s: %s', a.argument, a.code)
)
from (
    values
    ('gap => ''jump''', '22023 INVALID_ARGUMENT'),
    ('missed => ''some''', '22023 INVALID_ARGUMENT'),
    ('catch_up => ''0 s''', '22023 INVALID_ARGUMENT'),
    ('dedup => ''maybe''', '22023 INVALID_ARGUMENT'),
    ('jitter => ''-1 s''', '22023 INVALID_ARGUMENT'),
    ('jitter => ''25 h''', '22023 INVALID_ARGUMENT'),
    ('starts_at => ''-infinity''', '22023 INVALID_ARGUMENT'),
    ('starts_at => ''2030-01-01'', ends_at => ''2030-01-01''', '22023 INVALID_ARGUMENT'),
    ('priority => 40000', '22023 INVALID_ARGUMENT'),
    ('max_attempts => 0', '22023 INVALID_ARGUMENT'),
    ('timeout => ''0 s''', '22023 INVALID_ARGUMENT'),
    ('metadata => ''[]''', '22023 INVALID_ARGUMENT'),
    ('queue => ''''', '22023 INVALID_ARGUMENT'), ('queue => ''*''', '22023 INVALID_ARGUMENT'),
    ('payload => to_jsonb(repeat(''x'', 2000000))', 'JQ005 PAYLOAD_TOO_LARGE')
) as a (argument, code);
select is(
    refusal(format(
        'select jobq.create_schedule(''x'', ''k'', every => %L)', a.every
    )),
    '22023 INVALID_ARGUMENT', format('every %s is refused', a.every)
)
from unnest(array['0.5 s', '0', '-1 h', '1 month', '1 year', '20 years']) as a (every);
select jobq.put_kind('strict', payload_schema => '{"type": "object", "required": ["to"]}');
select is(
    refusal('select jobq.create_schedule(''x'', ''strict'', ''@daily'')'),
    'JQ006 PAYLOAD_INVALID', 'the payload must fit its kind when it is declared'
);
select jobq.put_queue('tight', max_depth => 1);
select jobq.enqueue('k', queue => 'tight');
select is(
    refusal('select jobq.create_schedule(''x'', ''k'', ''@daily'', queue => ''tight'')'),
    'none', 'a full queue is no reason to refuse a schedule'
);

select * from finish();
rollback;
