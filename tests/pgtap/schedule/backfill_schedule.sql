-- What jobq.backfill_schedule() promises.
begin;
select plan(24);

select jobq.create_schedule(
    'nightly', 'report', '0 3 * * *', payload => '{"n": 1}', queue => 'q', priority => 3,
    dedup => 'skip', dedup_key => 'report'
) as nightly \gset

select throws_ok(
    format('select jobq.backfill_schedule(%s)', r.arguments), r.state, null,
    format('backfill_schedule(%s): %s', r.arguments, r.state)
)
from (
    values ('null, ''2026-01-01'', ''2026-01-02''', '22004'),
    ('''nightly'', null, ''2026-01-02''', '22004'),
    ('''nightly'', ''2026-01-01'', null', '22004'),
    ('''nightly'', ''2026-01-01'', ''2026-01-02'', null', '22004'),
    ('''nightly'', ''2026-01-01'', ''2026-01-02'', dry_run => null', '22004'),
    ('''nightly'', ''2026-01-02'', ''2026-01-02''', '22023'),
    ('''nightly'', ''-infinity'', ''2026-01-02''', '22023'),
    ('''nightly'', ''2026-01-01'', ''infinity''', '22023'),
    ('''nightly'', ''2026-01-01'', now() + interval ''1 h''', '22023'),
    ('''nightly'', ''2026-01-01'', ''2026-01-02'', 0', '22023'),
    ('''nightly'', ''2026-01-01'', ''2026-01-09'', 7', '22023'),
    ('''nightly'', ''2026-01-01'', ''2026-01-02'', reason => repeat(''x'', 513)', '22023'),
    ('''nothing'', ''2026-01-01'', ''2026-01-02''', 'JQ007')
) as r (arguments, state);
select is((select count(*)::integer from jobq.job), 0, 'what is refused makes nothing');

select results_eq(
    $$select slot_at, job_id from jobq.backfill_schedule(
        'nightly', '2026-01-01 03:00 UTC', '2026-01-04 03:00 UTC', 3, dry_run => true
    )$$,
    $$values ('2026-01-01 03:00 UTC'::timestamptz, null::uuid),
    ('2026-01-02 03:00 UTC', null), ('2026-01-03 03:00 UTC', null)$$,
    'a dry run tells the slots, the first bound with, the last without'
);
select is((select count(*)::integer from jobq.job), 0, 'and makes nothing');

create temporary table made as
select * from jobq.backfill_schedule(
    'nightly', '2026-01-01', '2026-01-04 UTC', reason => 'the outage'
);
select results_eq(
    $$select j.slot_at, j.kind, j.payload, j.queue, j.priority::integer, j.schedule_id,
        j.run_at <= clock_timestamp() and j.run_at > '2026-02-01'
    from made as m cross join lateral jobq.get_job(m.job_id) as j order by 1$$,
    format($$select s, 'report', '{"n": 1}'::jsonb, 'q', 3, %L::uuid, true
    from unnest('{2026-01-01 03:00Z,2026-01-02 03:00Z,2026-01-03 03:00Z}'::timestamptz[]) as s$$,
    :'nightly'),
    'each slot has its job, whatever the overlap rule, due now'
);
select results_eq(
    $$select a.action, a.reason from jobq.audit as a where a.subject = 'nightly'
    and a.action = 'backfill_schedule'$$,
    $$values ('backfill_schedule', '3 slots: the outage')$$, 'the audit has it'
);
select is_empty(
    $$select * from jobq.backfill_schedule('nightly', '2026-01-01', '2026-01-04 UTC')$$,
    'a slot is made once'
);
select jobq.cancel(m.job_id) from made as m where m.slot_at < '2026-01-02';
select jobq.update_schedule('nightly', '{"payload": {"n": 2}}');
select results_eq(
    $$select slot_at from jobq.backfill_schedule('nightly', '2025-12-31', '2026-01-04 UTC')$$,
    $$values ('2025-12-31 03:00 UTC'::timestamptz)$$,
    'also when its job has ended, or was one of an older version'
);

select jobq.create_schedule(
    'hourly', 'a', every => '1 h', starts_at => '2026-01-01 00:30 UTC'
);
update jobq_private.schedule set next_run_at = '2026-01-01 00:30 UTC' where name = 'hourly';
select results_eq(
    $$select slot_at from jobq.backfill_schedule(
        'hourly', '2025-12-31 23:00 UTC', '2026-01-01 01:30 UTC', dry_run => true
    )$$,
    $$values ('2025-12-31 23:30 UTC'::timestamptz)$$,
    'not what tick() has yet to take; an interval reaches back before its start'
);
select jobq.pause_schedule('hourly');
select results_eq(
    $$select slot_at from jobq.backfill_schedule(
        'hourly', '2025-12-31 23:00 UTC', '2026-01-01 01:30 UTC', dry_run => true
    )$$,
    $$values ('2025-12-31 23:30 UTC'::timestamptz), ('2026-01-01 00:30 UTC')$$,
    'while it is paused, tick() takes none'
);
select jobq.create_schedule('chain', 'a', every => '1 h', from_completion => true);
select throws_ok(
    $$select jobq.backfill_schedule('chain', '2026-01-01', '2026-01-02')$$, '22023', null,
    'a schedule that counts from completion has no past'
);
select jobq.retire_schedule('nightly');
select throws_ok(
    $$select jobq.backfill_schedule('nightly', '2026-01-01', '2026-01-02')$$, 'JQ002', null,
    'a retired one is refused'
);

select * from finish();
rollback;
