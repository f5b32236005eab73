-- No column of a job is lost when it is made, when it ends, when it comes back, or to who looks at it.
-- Needs more than the core.
begin;
select plan(11);

create function pg_temp.differing(before jsonb, after jsonb)
returns text[]
language sql
as $$
    select coalesce(array_agg(b.key order by b.key), '{}')
    from jsonb_each(before) as b
    where b.value is distinct from after -> b.key
$$;

select jobq.enqueue('k', '{"a": 1}', metadata => '{"b": 2}') as job \gset
select attempt from jobq.claim('{default}', 'w') \gset

-- Fill what is still empty, past the triggers.
set local session_replication_role = replica;
do $$
declare
    _name text;
    _type text;
begin
    for _name, _type in
        select a.attname, format_type(a.atttypid, null)
        from jobq_private.job as j
        cross join jsonb_each(to_jsonb(j)) as e
        join pg_attribute as a on a.attrelid = 'jobq_private.job'::regclass and a.attname = e.key
        where e.value in ('null', '0')
    loop
        execute format('update jobq_private.job set %I = %L', _name, case
            when _type in ('smallint', 'integer', 'bigint', 'jobq_private.cost') then '7'
            when _type = 'jsonb' then '{"c": 3}'
            when _type = 'interval[]' then '{1 h,2 h,3 h}'
            when _type = 'uuid' then '00000000-0000-7000-8000-000000000000'
            when _type = 'timestamp with time zone' then '2026-01-01Z'
            else 'skip'
        end);
    end loop;
end
$$;
update jobq_private.job set run_at = '2026-01-01Z';
set local session_replication_role = origin;
select to_jsonb(j) as live from jobq_private.job as j \gset

select from jobq_private.archive_jobs(array[:'job'::uuid], array[:attempt], 'dead');
select is(
    (select pg_temp.differing(:'live', to_jsonb(a)) from jobq_private.job_archive as a),
    '{due_at,lease_expires_at,previous_state,reported_cost,slot,state,waits_since}', 'the archive has all that a job had'
);

savepoint dead;
select from jobq_private.redrive_jobs(
    array[:'job'::uuid], array(select finished_at from jobq_private.job_archive)
);
select pg_temp.differing(:'live', to_jsonb(j)) as in_sets from jobq_private.job as j \gset
rollback to dead;

select jobq.redrive(:'job');
select is(
    (select pg_temp.differing(:'live', to_jsonb(j)) from jobq_private.job as j),
    array[
        'cancel_reason', 'cancel_requested_at', 'claimed_at', 'due_at', 'expires_at', 'expiries',
        'heartbeat_at', 'is_awaited', 'lease_expires_at', 'previous_state', 'progress', 'reported_cost', 'run_at',
        'slot', 'state', 'uncounted',
        'waits_since', 'worker'
    ],
    'a job that is redriven has all but what its attempts have left'
);
select is(
    :'in_sets'::text[],
    (select pg_temp.differing(:'live', to_jsonb(j)) from jobq_private.job as j),
    'one of many has the same'
);

select is(
    (
        select array_agg(a.attname::text order by a.attname)
        from pg_attribute as a
        where a.attrelid = 'jobq_private.job'::regclass
        and a.attnum > 0
        and a.attname not in (
            select v.attname from pg_attribute as v where v.attrelid = 'jobq.job'::regclass
        )
    ),
    '{dedup,due_at,expiries,is_awaited,keep,key_id,last_error_details,reported_cost,slot,transition_slot,uncounted,waits_since}', 'the view shows all that is for people'
);

select is(
    (
        select array_agg(v.attname::text order by v.attname)
        from pg_attribute as v
        where v.attrelid = 'jobq.job'::regclass
        and v.attname not in (
            select k.key
            from jobq.job as j
            cross join json_object_keys(jobq_private.job_document(j)) as k (key)
        )
    ),
    '{cancel_requested_at,claimed_at,delivery_version,lease,previous_state,timeout}',
    'job_document shows all other columns of the view'
);

select is(
    (
        select array_agg(a.attname::text order by a.attname)
        from pg_attribute as a
        where a.attrelid = 'jobq_private.job'::regclass
        and a.attnum > 0
        and not exists (
            select from pg_trigger as t
            where t.tgrelid = a.attrelid and t.tgname in ('job_identity', 'job_key')
            and a.attnum = any(t.tgattr)
        )
    ),
    array[
        'attempt', 'cancel_reason', 'cancel_requested_at', 'claimed_at', 'due_at', 'expires_at',
        'expiries', 'heartbeat_at', 'is_awaited', 'keep', 'last_error',
        'last_error_code', 'last_error_details', 'lease_expires_at',
        'metadata', 'previous_state', 'priority', 'progress', 'region', 'reported_cost',
        'run_at', 'slot',
        'state', 'transition_slot', 'uncounted', 'waits_since', 'worker'
    ],
    'job_identity and job_key guard all other columns against change'
);

-- All that a caller can say of a job, but for what needs other jobs.
select jsonb_populate_record(null::jobq_private.new_job, jsonb_object_agg(a.attname, case
    when a.attname = 'ordinal' then '1'
    when a.atttypid in ('integer'::regtype, 'smallint'::regtype, 'numeric'::regtype) then '7'
    when a.atttypid = 'jsonb'::regtype then '{"c": 3}'
    when a.atttypid = 'interval'::regtype then '"2 h"'
    when a.atttypid = 'timestamptz'::regtype then '"2100-01-01Z"'
    when a.atttypid = 'uuid'::regtype then '"00000000-0000-7000-8000-000000000000"'
    when a.atttypid = 'boolean'::regtype then 'true'
    else '"default"'
end::jsonb)) as new_job
from pg_attribute as a
where a.attrelid = 'jobq_private.new_job'::regclass
and a.attname not in (
    'dedup_key', 'dedup', 'after', 'after_failure', 'batch_id', 'callback_of', 'is_awaited',
    'job_id', 'lease', 'keep', 'delivery_version', 'is_limited', 'dedup_period',
    'dedup_max_wait', 'max_depth', 'key_id'
) \gset

create function pg_temp.newest()
returns jsonb
language sql
as $$
    select to_jsonb(j) - '{job_id,created_at}'::text[]
    from jobq_private.job as j
    order by j.job_id desc limit 1
$$;

savepoint unmade;
select jobq_private.store_jobs(array[:'new_job'::jobq_private.new_job], true) \g /dev/null
select pg_temp.newest() as stored \gset
rollback to unmade;
select from jobq_private.schedule_store(array[:'new_job'::jobq_private.new_job]);
select pg_temp.newest() as by_schedule \gset
rollback to unmade;
select is(
    pg_temp.differing(
        jsonb_strip_nulls(to_jsonb(:'new_job'::jobq_private.new_job) - 'ordinal'), :'stored'
    ),
    '{}', 'store_jobs keeps all that callers say'
);
select is(
    pg_temp.differing(:'stored', :'by_schedule'), '{}', 'schedule_store keeps what store_jobs does'
);

-- The short way of enqueue() and the way of all jobs make the same of a job.
select jobq.put_kind('plain', priority => 3, max_attempts => 4, keep_dead => '2 days');
select jobq.put_queue('plain', timeout => '7 s', lease => '8 s');
savepoint unmade;
select jobq.enqueue('plain', '{"n": 1}', 'plain') \g /dev/null
select pg_temp.newest() as by_enqueue \gset
rollback to unmade;
select jobq.enqueue_many('[{"kind": "plain", "payload": {"n": 1}, "queue": "plain"}]') \g /dev/null
select is(
    pg_temp.newest() - 'due_at', :'by_enqueue'::jsonb - 'due_at', 'a plain job is the same by enqueue() as by enqueue_many()'
);

select is_empty(
    $$
    select c.conname from pg_constraint as c
    where c.conrelid = 'jobq_private.job'::regclass and c.contype = 'c'
    union all
    select t.tgname from pg_trigger as t
    where t.tgrelid = 'jobq_private.job'::regclass and t.tgtype & 4 > 0 and t.tgqual is not null
    $$,
    'no check and no condition of a trigger is read anew by each statement that adds a job'
);
select is_empty(
    $$
    select c.conname from pg_constraint as c
    where c.conrelid = 'jobq_private.job_archive'::regclass and c.contype = 'c'
    union all
    select t.tgname from pg_trigger as t
    where t.tgrelid = 'jobq_private.job_archive'::regclass and t.tgtype & 6 = 6
    $$,
    'no check, and no trigger before it, holds up a row that enters the archive'
);

select * from finish();
rollback;
