-- What the functions that show schedules promise, and jobq_http.submit_schedule().
begin;
select plan(33);

select jobq.create_schedule(
    's' || n, 'k' || (n % 2), '@daily', queue => case when n < 4 then 'q' end
)
from generate_series(1, 5) as n;
select jobq.pause_schedule('s2');
select jobq.retire_schedule('s1');
select jobq.update_schedule('s3', '{"payload": {"b": 2}}');

-- get_schedule
select is((jobq_internal.get_schedule('s3')).version, 2, 'a name means the newest version');
select is((jobq_internal.get_schedule('s1')).status, 'retired', 'though it be retired');
select is(
    (jobq_internal.get_schedule(upper((jobq_internal.get_schedule('s2')).schedule_id::text))).name, 's2',
    'an id means its version, in capitals too'
);

-- list_schedules
select is(
    array(select l.name from jobq_internal.list_schedules() as l), array['s3', 's5', 's4', 's2'],
    'those in force are listed, the newest version first'
);
select is(
    array(select l.name from jobq_internal.list_schedules('retired') as l), array['s3', 's1'],
    'the retired ones if asked for'
);
select is(array(select l.name from jobq_internal.list_schedules('paused') as l), array['s2'], 'by status');
select is(
    array(select l.name from jobq_internal.list_schedules(kind => 'k1') as l), array['s3', 's5'], 'by kind'
);
select is(
    array(select l.name from jobq_internal.list_schedules(queue => 'q') as l), array['s3', 's2'],
    'by queue'
);
select is(
    array(select l.name from jobq_internal.list_schedules(
        before => (jobq_internal.get_schedule('s5')).schedule_id, max_schedules => 1) as l),
    array['s4'], 'page by page'
);

-- list_schedule_versions
select results_eq(
    $$ select v.version, v.payload from jobq_internal.list_schedule_versions('s3') as v $$,
    $$ values (2, '{"b": 2}'::jsonb), (1, '{}') $$, 'the newest version comes first'
);
select is(
    (select count(*) from jobq_internal.list_schedule_versions(
        (jobq_internal.get_schedule('s3')).previous_version_id::text)), 2::bigint,
    'any version''s id leads to all of them'
);

-- show_schedule and its pages
select jobq.create_schedule(
    'shown', 'push-notification', '0 9 * * MON', time_zone => 'Asia/Kolkata',
    starts_at => '2099-03-16T00:00:00Z', payload => '{"user_id": "u_abc"}'
) as shown \gset
select is(
    (jobq_http.show_schedule('shown')::jsonb - 'created_at'),
    jsonb_build_object('job_id', :'shown') || '{
        "endpoint": "push-notification", "endpoint_type": null, "trigger": "CRON",
        "status": "ACTIVE", "version": 1, "previous_version_id": null, "replaced_by_id": null,
        "name": "shown", "cron": "0 9 * * MON", "every_ms": null, "from_completion": false,
        "timezone": "Asia/Kolkata", "gap": "auto", "fold": "auto", "missed": "all",
        "catch_up_ms": null, "dedup": "enqueue", "dedup_key": null, "concurrency_key": null, "jitter_ms": 0,
        "starts_at": "2099-03-16T00:00:00+00:00", "ends_at": null,
        "next_run_at": "2099-03-16T09:00:00+05:30", "last_tick_at": null,
        "input": {"user_id": "u_abc"}, "kind": "push-notification", "queue": null, "metadata": {}, "graph": null, "priority": null,
        "max_attempts": null, "timeout_ms": null, "paused_at": null, "pause_reason": null,
        "region": "default", "retired_at": null
    }',
    'a schedule is a CRON job to the HTTP API'
);
select results_eq(
    $$ select p.item ->> 'name', p.cursor is null
    from jobq_http.page_schedules(max_schedules => 2) as p $$,
    $$ values ('shown', false), ('s3', false) $$, 'a page that is not the last leads on'
);
select results_eq(
    $$ select p.item ->> 'name', p.cursor is null
    from jobq_http.page_schedules(
        before => (jobq_internal.get_schedule('s5')).schedule_id, max_schedules => 2) as p $$,
    $$ values ('s4', false), ('s2', true) $$, 'the last one does not'
);
select is_empty(
    $$ select from jobq_http.page_schedules(kind => 'nothing') $$, 'there may be nothing at all'
);
select isnt_empty(
    $$ select from jobq_http.page_schedules(max_schedules => 1000) $$, 'a page may have 1000'
);
select results_eq(
    $$ select p.item ->> 'version', p.item ->> 'status', p.cursor
    from jobq_http.page_schedule_versions('s3') as p $$,
    $$ values ('2', 'ACTIVE', 2), ('1', 'RETIRED', null) $$, 'versions are paged, too'
);
select results_eq(
    $$ select p.item ->> 'version' from jobq_http.page_schedule_versions('s3', before => 2) as p $$,
    $$ values ('1') $$, 'by number'
);

-- moment_in
select results_eq(
    $$
    select jobq_private.moment_in('2026-07-16 03:30:00.25 UTC', z)
    from unnest(array['UTC', 'America/St_Johns', 'Asia/Kathmandu', 'Mars/Base']) as z
    $$,
    $$
    values ('2026-07-16T03:30:00.25+00:00'), ('2026-07-16T01:00:00.25-02:30'),
    ('2026-07-16T09:15:00.25+05:45'), ('2026-07-16T03:30:00.25+00:00')
    $$,
    'an instant is shown with the offset of its zone; by UTC when the zone is gone'
);

-- submit_schedule
select created, item ->> 'job_id' as id from jobq_http.submit_schedule(
    '{"name": "submitted", "kind": "k", "cron": "@daily", "payload": {"a": 1}}'
) \gset first_
select is(:'first_created'::boolean, true, 'a new name makes a schedule');
select results_eq(
    $$ select s.created, s.item ->> 'job_id' from jobq_http.submit_schedule(
        '{"name": "submitted", "kind": "k", "every": "1 h"}') as s $$,
    format('values (false, %L)', :'first_id'),
    'a name in use yields the schedule that has it, whatever else is said'
);
select jobq.retire_schedule('submitted');
select is(
    (jobq_http.submit_schedule('{"name": "submitted", "kind": "k", "cron": "@daily"}')).created, true,
    'a retired name is free'
);
select isnt(
    (jobq_http.submit_schedule('{"kind": "k", "every": "1 h"}')).item ->> 'name',
    (jobq_http.submit_schedule('{"kind": "k", "every": "1 h"}')).item ->> 'name',
    'without a name each is another'
);

-- Refusals
select is(refusal(a.statement), a.code, format('%s: %s', a.statement, a.code))
from (
    values
    ('select jobq_internal.get_schedule(null)', '22004 NULL_ARGUMENT'),
    ('select jobq_internal.get_schedule(''nobody'')', 'JQ007 SCHEDULE_NOT_FOUND'),
    ('select jobq_http.show_schedule(''nobody'')', 'JQ007 SCHEDULE_NOT_FOUND'),
    ('select jobq_internal.list_schedule_versions(''nobody'')', 'JQ007 SCHEDULE_NOT_FOUND'),
    ('select jobq_http.page_schedule_versions(''nobody'')', 'JQ007 SCHEDULE_NOT_FOUND'),
    ('select jobq_internal.list_schedules(''ACTIVE'')', '22023 INVALID_ARGUMENT'),
    ('select jobq_internal.list_schedules(max_schedules => 0)', '22023 INVALID_ARGUMENT'),
    ('select jobq_internal.list_schedules(max_schedules => null)', '22004 NULL_ARGUMENT'),
    ('select jobq_http.submit_schedule(''{"kind": "k", "corn": "x"}'')', '22023 INVALID_ARGUMENT'),
    ('select jobq_http.submit_schedule(null)', '22004 NULL_ARGUMENT')
) as a (statement, code);

select * from finish();
rollback;
