-- jobq in one file and one transaction, for those without Sqitch or Python:
--     psql --file jobq.sql
-- Sqitch can adopt the result: sqitch deploy --log-only
-- Made by sql/snapshot.py from deploy/: edit sql/ and deploy/.
\set ON_ERROR_STOP on
begin;
set local client_min_messages = warning;

-- Deploy jobq:roles to pg
-- Roles belong to the whole cluster, so creating them tolerates that another
-- database has created them before.
do $$
declare
    _role text;
begin
    foreach _role in array array[
        'jobq_owner', 'jobq_producer', 'jobq_worker', 'jobq_operator', 'jobq_reader'
    ] loop
        if not exists (select from pg_catalog.pg_roles as r where r.rolname = _role) then
            execute format('create role %I nologin', _role);
        end if;
    end loop;
end
$$;

grant jobq_owner to current_user;

-- jobq.health() names the session that holds back vacuum where this grant is to be had.
do $$
begin
    grant pg_read_all_stats to jobq_owner;
exception
    when insufficient_privilege then
        raise notice 'jobq.health() will not see other sessions: grant pg_read_all_stats to jobq_owner';
end
$$;

grant jobq_reader to jobq_operator;

comment on role jobq_owner is 'Owns every jobq object; nobody logs in as it.';
comment on role jobq_producer is 'May enqueue jobs.';
comment on role jobq_worker is 'May claim jobs and settle them.';
comment on role jobq_operator is 'May cancel, redrive, pause and configure.';
comment on role jobq_reader is 'May look at jobs and statistics.';

-- Deploy jobq:schemas to pg
create schema jobq authorization jobq_owner;
create schema jobq_http authorization jobq_owner;
create schema jobq_private authorization jobq_owner;

set local role jobq_owner;

comment on schema jobq is 'The public interface of jobq: functions and views.';
comment on schema jobq_http is 'What only the HTTP server and its console call: documents, pages, API keys.';
comment on schema jobq_private is 'Tables and helpers of jobq; only jobq_owner touches them.';

grant usage on schema jobq, jobq_http
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

alter default privileges in schema jobq revoke execute on functions from public;
alter default privileges in schema jobq_http revoke execute on functions from public;
alter default privileges in schema jobq_private revoke execute on functions from public;
alter default privileges for role jobq_owner revoke execute on functions from public;

reset role;

-- Deploy jobq:error_tables to pg
-- Every error that jobq raises, once: SQLSTATE, symbolic code, HTTP status and prose.
set local role jobq_owner;

create table jobq_private.error (
    code text not null,
    sqlstate text not null,
    http_status smallint not null,
    message text not null,
    hint text not null,
    constraint error_pkey primary key (code),
    constraint error_sqlstate_check check (sqlstate ~ '^(JQ[0-9]{3}|22[0-9A-Z]{3}|42501)$'),
    constraint error_http_status_check check (http_status between 400 and 599)
);

comment on table jobq_private.error is 'Every error that jobq raises, with its SQLSTATE, its symbolic code and its HTTP status.';

insert into jobq_private.error (code, sqlstate, http_status, message, hint)
values
('JOB_NOT_FOUND', 'JQ001', 404, 'job not found',
 'check the job id; finished jobs are dropped when their retention ends'),
('BATCH_NOT_FOUND', 'JQ001', 404, 'batch not found',
 'check the batch id; a batch is forgotten when its retention ends'),
('GRAPH_CYCLE', '22023', 400, 'the jobs of a graph wait for each other',
 'take one of the arrows away'),
('ILLEGAL_STATE', 'JQ002', 409, 'the job cannot change in this way from its present state',
 'read the state with: select state from jobq.job where job_id = ...'),
('IMMUTABLE', 'JQ002', 409, 'this part of a job never changes',
 'cancel the job and enqueue another'),
('LEASE_LOST', 'JQ003', 409, 'this attempt no longer holds the job',
 'drop the work: another attempt has the job, or it has ended'),
('DEDUP_CONFLICT', 'JQ004', 409, 'another live job holds this dedup key',
 'cancel the live job or wait until it has ended'),
('IDEMPOTENCY_CONFLICT', 'JQ004', 409, 'another job holds this idempotency key',
 'wait until the job that the detail names has failed, or redrive that one'),
('PAYLOAD_TOO_LARGE', 'JQ005', 413, 'the payload is too large',
 'store the data elsewhere and enqueue a reference to it, or raise max_payload_bytes'),
('PAYLOAD_TOO_DEEP', 'JQ006', 422, 'the payload is nested too deeply',
 'flatten the payload, or raise max_payload_depth'),
('PAYLOAD_INVALID', 'JQ006', 422, 'the payload does not fit its kind',
 'mend the field that the detail names'),
('SCHEMA_INVALID', 'JQ006', 422, 'the payload schema is not usable',
 'use the keywords that the detail names'),
('QUEUE_NOT_FOUND', 'JQ007', 404, 'queue not found',
 'declare it with: select jobq.put_queue(...)'),
('KIND_NOT_FOUND', 'JQ007', 404, 'kind not found',
 'declare it with: select jobq.put_kind(...)'),
('API_KEY_NOT_FOUND', 'JQ007', 404, 'API key not found',
 'list the keys with: select * from jobq.list_api_keys()'),
('API_KEY_EXISTS', 'JQ004', 409, 'an API key of this name exists',
 'choose another name; the name of a revoked key is not used again'),
('SCHEDULE_NOT_FOUND', 'JQ007', 404, 'schedule not found',
 'list the schedules with: select * from jobq.list_schedules()'),
('SCHEDULE_RETIRED', 'JQ002', 409, 'this version of the schedule is retired',
 'give the name of the schedule, or declare it again with: select jobq.create_schedule(...)'),
('SCHEDULE_IMMUTABLE', 'JQ002', 409, 'a version of a schedule never changes',
 'make a new version with: select jobq.update_schedule(...)'),
('PAYLOAD_SPEC_NOT_FOUND', 'JQ007', 404, 'payload spec not found',
 'declare it with: select jobq.put_payload_spec(...)'),
('CONFIG_NOT_FOUND', 'JQ007', 404, 'config not found',
 'declare it with: select jobq.put_config(...)'),
('SECRET_NOT_FOUND', 'JQ007', 404, 'secret not found',
 'store it with: jobq secrets put'),
('ENDPOINT_NOT_FOUND', 'JQ007', 404, 'endpoint not found',
 'declare it with: select jobq.put_endpoint(...)'),
('INVALID_PAYLOAD_SPEC_REF', 'JQ007', 422, 'the endpoint names an unknown payload spec',
 'declare the payload spec first, with jobq.put_payload_spec()'),
('INVALID_CONFIG_REF', 'JQ007', 422, 'the endpoint names an unknown config',
 'declare the config first, with jobq.put_config()'),
('TEMPLATE_RESOLUTION_FAILED', 'JQ007', 422, 'a template refers to something that is not there',
 'write {{config.key}}, {{secret.name}} or {{input.path}}, and declare the key or secret first'),
('FUNCTION_NOT_FOUND', 'JQ007', 422, 'the kind names an unknown function',
 'create it as f(jsonb) returns jsonb, and name its schema'),
('FUNCTION_DENIED', '42501', 403, 'who declares a kind must be allowed to execute its function',
 'grant execute on the function, and usage on its schema'),
('DEFINITION_EXISTS', 'JQ004', 409, 'a definition of this name exists',
 'update it, or choose another name'),
('HAS_DEPENDENTS', 'JQ008', 409, 'something still depends on this',
 'end or delete what the detail names first'),
('INVALID_CRON', 'JQ009', 422, 'invalid cron expression',
 'write [second] minute hour day-of-month month day-of-week [year] or @daily; a list is 1,15, a range 1-5, a step within the field */10; for any other period use an interval'),
('CRON_NEVER_FIRES', 'JQ009', 422, 'the cron expression can never fire',
 'name a day that these months have; L is the last day of each month'),
('INVALID_TIME_ZONE', 'JQ009', 422, 'unknown time zone',
 'select name from pg_timezone_names lists the zones; name a place, such as Europe/Berlin'),
('QUEUE_FULL', 'JQ010', 429, 'the queue is full',
 'enqueue later, or raise max_depth of the queue'),
('LIMIT_REACHED', 'JQ011', 409, 'a limit, a rate or a hold does not let the job start now',
 'start it later; claim() does so by itself, and explain() says what it waits for'),
('LIMIT_NOT_FOUND', 'JQ007', 404, 'no limit of this key was declared',
 'list the limits with: select * from jobq.list_limits()'),
('SHARD_AWAY', 'JQ012', 503, 'a shard that is needed does not answer',
 'repeat the call, with an idempotency key where it enqueues; the other shards go on'),
('ONE_DATABASE', '22023', 400, 'this call is for one database, not for a cluster',
 'connect to the shard: jobq.list_shards() has their addresses'),
('NULL_ARGUMENT', '22004', 400, 'an argument that is needed is null',
 'give the argument that the detail names'),
('INVALID_ARGUMENT', '22023', 400, 'an argument has a value that it may not have',
 'the detail names the argument and what it may hold');

reset role;

-- Deploy jobq:setting_tables to pg
set local role jobq_owner;

-- Retry presets, the global defaults (one row), and what queues and kinds say instead.
create table jobq_private.retry_preset (
    retry_preset text not null,
    strategy text not null,
    initial_delay interval not null,
    max_delay interval not null,
    jitter double precision not null,
    description text not null,
    constraint retry_preset_pkey primary key (retry_preset)
);

comment on table jobq_private.retry_preset is 'Named retry policies.';

insert into jobq_private.retry_preset values
('standard', 'exponential', '1 s', '1 h', 0.25,
 'doubles from 1 s up to 1 h, 25 % jitter'),
('decorrelated', 'decorrelated', '1 s', '60 s', 0,
 'uniform between 1 s and the lesser of 60 s and 3^attempt s'),
('powers_of_two', 'exponential', '2 s', '1024 s', 0,
 '2^attempt s up to 2^10 s, no jitter'),
('delivery', 'exponential', '1 s', '60 s', 0.25,
 'doubles from 1 s up to 60 s, 25 % jitter');

create table jobq_private.setting (
    is_singleton boolean not null default true,
    priority smallint not null default 0,
    max_attempts integer not null default 5,
    timeout interval not null default '5 min',
    lease interval not null default '30 s',
    retry_preset text not null default 'standard',
    dedup text not null default 'skip',
    reuse_key_after_failure boolean not null default false,
    max_expiries integer not null default 5,
    max_payload_bytes integer not null default 1048576,
    max_payload_depth integer not null default 64,
    retention interval not null default '30 days',
    key_retention interval not null default '30 days',
    redact_emails boolean not null default false,
    constraint setting_pkey primary key (is_singleton),
    constraint setting_is_singleton_check check (is_singleton),
    constraint setting_max_attempts_check check (max_attempts between 1 and 10000),
    constraint setting_timeout_check check (timeout between '1 ms' and '365 days'),
    constraint setting_lease_check check (lease between '1 s' and '1 day'),
    constraint setting_dedup_check check (dedup in ('skip', 'enqueue', 'replace')),
    constraint setting_max_expiries_check check (max_expiries >= 1),
    constraint setting_max_payload_bytes_check
    check (max_payload_bytes between 1024 and 104857600),
    constraint setting_max_payload_depth_check check (max_payload_depth between 1 and 512),
    constraint setting_retention_check
    check (retention between '1 day' and '36500 days'),
    constraint setting_key_retention_check
    check (key_retention between '1 hour' and retention),
    constraint setting_retry_preset_fkey foreign key (retry_preset)
    references jobq_private.retry_preset (retry_preset)
);

comment on table jobq_private.setting is 'Global defaults, in one row.';

insert into jobq_private.setting default values;

create table jobq_private.queue (
    queue text not null,
    priority smallint,
    max_attempts integer,
    timeout interval,
    lease interval,
    retry_preset text,
    max_depth integer,
    max_running integer,
    rate_limit integer,
    rate_period interval,
    rate_burst integer,
    key_max_running integer,
    key_rate_limit integer,
    key_rate_period interval,
    key_rate_burst integer,
    ordered boolean,
    on_dead text,
    paused_at timestamptz,
    pause_reason text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint queue_pkey primary key (queue),
    constraint queue_queue_check check (length(queue) between 1 and 128),
    constraint queue_max_attempts_check check (max_attempts between 1 and 10000),
    constraint queue_timeout_check check (timeout between '1 ms' and '365 days'),
    constraint queue_lease_check check (lease between '1 s' and '1 day'),
    constraint queue_max_depth_check check (max_depth >= 1),
    constraint queue_max_running_check check (max_running between 1 and 32767),
    constraint queue_rate_limit_check check (rate_limit between 1 and 1000000),
    constraint queue_rate_period_check
    check (rate_period between '1 ms' and '365 days'),
    constraint queue_rate_burst_check check (rate_burst between 1 and 32767),
    constraint queue_rate_check
    check (rate_limit is not null or num_nonnulls(rate_period, rate_burst) = 0),
    constraint queue_key_max_running_check check (key_max_running between 1 and 32767),
    constraint queue_key_rate_limit_check check (key_rate_limit between 1 and 1000000),
    constraint queue_key_rate_period_check
    check (key_rate_period between '1 ms' and '365 days'),
    constraint queue_key_rate_burst_check check (key_rate_burst between 1 and 32767),
    constraint queue_key_rate_check
    check (key_rate_limit is not null or num_nonnulls(key_rate_period, key_rate_burst) = 0),
    constraint queue_on_dead_check check (on_dead in ('continue', 'hold')),
    constraint queue_ordered_check check (ordered is true or on_dead is null),
    constraint queue_retry_preset_fkey foreign key (retry_preset)
    references jobq_private.retry_preset (retry_preset)
);

comment on table jobq_private.queue is 'What a queue says in place of the global defaults, and whether it is paused.';

create table jobq_private.kind (
    kind text not null,
    queue text,
    priority smallint,
    max_attempts integer,
    timeout interval,
    lease interval,
    retry_preset text,
    retry_strategy text,
    retry_initial_delay interval,
    retry_max_delay interval,
    retry_jitter double precision,
    dedup text,
    dedup_period interval,
    dedup_max_wait interval,
    reuse_key_after_failure boolean,
    concurrency_key text[],
    max_running integer,
    rate_limit integer,
    rate_period interval,
    rate_burst integer,
    keep interval[],
    payload_schema jsonb,
    json_schema jsonb,
    delivery_version integer,
    run text,
    retry_on text[],
    version bigint,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint kind_pkey primary key (kind),
    constraint kind_kind_check check (length(kind) between 1 and 128),
    constraint kind_queue_check check (length(queue) between 1 and 128),
    constraint kind_max_attempts_check check (max_attempts between 1 and 10000),
    constraint kind_timeout_check check (timeout between '1 ms' and '365 days'),
    constraint kind_lease_check check (lease between '1 s' and '1 day'),
    constraint kind_retry_strategy_check
    check (retry_strategy in ('fixed', 'linear', 'exponential', 'decorrelated')),
    constraint kind_retry_initial_delay_check
    check (extract(epoch from retry_initial_delay) between 0 and 31536000),
    constraint kind_retry_max_delay_check
    check (extract(epoch from retry_max_delay) between 0 and 31536000),
    constraint kind_retry_jitter_check check (retry_jitter between 0 and 1),
    constraint kind_dedup_check
    check (dedup in ('skip', 'enqueue', 'replace', 'debounce', 'throttle')),
    constraint kind_dedup_period_check
    check (dedup_period between '1 ms' and '365 days'),
    constraint kind_dedup_max_wait_check
    check (dedup_max_wait between '1 ms' and '365 days'),
    constraint kind_max_running_check check (max_running between 1 and 32767),
    constraint kind_rate_limit_check check (rate_limit between 1 and 1000000),
    constraint kind_rate_period_check
    check (rate_period between '1 ms' and '365 days'),
    constraint kind_rate_burst_check check (rate_burst between 1 and 32767),
    constraint kind_rate_check
    check (rate_limit is not null or num_nonnulls(rate_period, rate_burst) = 0),
    constraint kind_concurrency_key_check
    check (
        cardinality(concurrency_key) between 1 and 16
        and array_ndims(concurrency_key) = 1
        and array_position(concurrency_key, null) is null
    ),
    constraint kind_retry_on_check
    check (array_to_string(retry_on, ' ', '-') ~ '^([0-9A-Z]{2}([0-9A-Z]{3})?( |$))*$'),
    constraint kind_keep_check
    check (keep[1] >= '0' and keep[2] >= '1 hour' and keep[3] >= '1 hour'),
    constraint kind_version_check check (version > 0),
    constraint kind_retry_preset_fkey foreign key (retry_preset)
    references jobq_private.retry_preset (retry_preset)
);

comment on table jobq_private.kind is 'What a kind of job says in place of its queue''s settings, and the shape of its payload: payload_schema is what the database enforces by itself, json_schema what needs an extension or a client; delivery_version is what a new job is delivered by, where the kind is an endpoint; run is the function that work() calls for a job, retry_on the errors after which it is tried again; keep is how long its jobs are kept that succeeded, are dead, were cancelled; version is that of the program that declared it.';

create type jobq_private.settings as (
    queue text,
    priority integer,
    max_attempts integer,
    timeout interval,
    lease interval,
    dedup text,
    reuse_key_after_failure boolean,
    payload_schema jsonb,
    json_schema jsonb,
    max_payload_bytes integer,
    max_payload_depth integer,
    max_depth integer,
    delivery_version integer,
    concurrency_key text[],
    is_limited boolean,
    dedup_period interval,
    dedup_max_wait interval,
    keep interval[]
);

comment on type jobq_private.settings is 'What holds for a new job of a kind in a queue, after resolution.';

create type jobq_private.retry_policy as (
    retry_strategy text,
    retry_initial_delay interval,
    retry_max_delay interval,
    retry_jitter double precision
);

comment on type jobq_private.retry_policy is 'How a failed job of a kind in a queue is tried again, after resolution.';

reset role;

-- Deploy jobq:job_tables to pg
set local role jobq_owner;

-- The state machine: no change but these can be stored.
create table jobq_private.transition (
    from_state text collate "C" not null,
    to_state text collate "C" not null,
    cause text not null,
    constraint transition_pkey primary key (from_state, to_state)
);

comment on table jobq_private.transition is 'The legal changes of a job''s state; jobs hold a foreign key to their copies in transition_lane.';

insert into jobq_private.transition (from_state, to_state, cause)
values
('queued', 'running', 'claim'),
('retrying', 'running', 'claim'),
('running', 'succeeded', 'complete'),
('running', 'retrying', 'fail with attempts left, or an expired lease'),
('running', 'dead', 'permanent failure, attempts spent, or unknown kind'),
('running', 'cancelled', 'the worker saw the request to cancel'),
('running', 'queued', 'release: shutdown or snooze, the attempt is not counted'),
('queued', 'cancelled', 'cancel, or replaced by a job with the same dedup key'),
('retrying', 'cancelled', 'cancel, or replaced by a job with the same dedup key'),
('queued', 'dead', 'expired before it could start'),
('retrying', 'dead', 'expired before it could start'),
('dead', 'queued', 'redrive by an operator'),
('cancelled', 'queued', 'redrive by an operator'),
('dead', 'blocked', 'redrive by an operator, while it has to wait for others'),
('cancelled', 'blocked', 'redrive by an operator, while it has to wait for others'),
('blocked', 'queued', 'what it waited for has come'),
('blocked', 'cancelled', 'cancel, or what it waited for cannot come any more'),
('blocked', 'dead', 'expired before it could start');

-- What the foreign keys refer to: the legal changes once more in each lane, a session's
-- being the low bits of its pid. A row that many transactions refer to at once gets a
-- multixact for each of them, with all of them as members. Neighbours lie on pages of
-- their own.
create table jobq_private.transition_lane (
    lane smallint not null,
    from_state text collate "C" not null,
    to_state text collate "C" not null
);

comment on table jobq_private.transition_lane is
'The legal changes of a job''s state, in each lane; made from transition.';

insert into jobq_private.transition_lane (lane, from_state, to_state)
select n.lane, t.from_state, t.to_state
from generate_series(0, 1023) as n (lane)
cross join jobq_private.transition as t
order by n.lane % 64, n.lane;

alter table jobq_private.transition_lane
add constraint transition_lane_pkey primary key (lane, from_state, to_state),
add constraint transition_lane_transition_fkey foreign key (from_state, to_state)
references jobq_private.transition (from_state, to_state)
on update cascade on delete cascade;

-- Checks of one column stand in domains: PostgreSQL reads the text of a table's checks anew for
-- each statement, that of a domain's once a session.
create domain jobq_private.dedup as text
constraint job_dedup_check check (value in ('skip', 'replace', 'debounce'));
create domain jobq_private.last_error as text
constraint job_last_error_check check (length(value) <= 512);
create domain jobq_private.instant as timestamptz
constraint job_run_at_check check (value between '0001-01-02 UTC' and '9999-12-30 UTC');

comment on domain jobq_private.dedup is 'How a job that holds its dedup key meets another.';
comment on domain jobq_private.instant is 'A time that every client can read.';
comment on domain jobq_private.last_error is 'An error''s text, cut.';

-- Live jobs only. Hot: wide fillfactor margin, eager autovacuum, partial indexes. Jobs in a
-- lane wait in job_lane_idx, all others in job_ready_idx. What runs where a max_running holds
-- has a place, of which job_place_idx gives each of a lane to one job, whoever claims it.
-- What must hold between columns (a lease while it runs and no longer, an attempt left while it
-- waits, a past only for what has one) job_birth and job_transition see to, for every writer.
create table jobq_private.job (
    job_id uuid not null,
    created_at timestamptz not null default now(),
    run_at jobq_private.instant not null default now(),
    claimed_at timestamptz,
    heartbeat_at timestamptz,
    lease_expires_at timestamptz,
    cancel_requested_at timestamptz,
    slot_at timestamptz,
    expires_at timestamptz,
    waits_since timestamptz,
    lease interval not null,
    timeout interval not null,
    schedule_id uuid,
    attempt integer not null default 0,
    uncounted integer not null default 0,
    max_attempts integer not null,
    expiries integer not null default 0,
    delivery_version integer,
    priority smallint not null default 0,
    lane smallint not null default (pg_backend_pid() & 1023),
    is_awaited boolean not null default false,
    state text collate "C" not null default 'queued',
    previous_state text collate "C",
    region text not null default 'default',
    queue text not null,
    kind text not null,
    lane_id uuid,
    concurrency_key text,
    place smallint,
    batch_id uuid,
    worker text,
    idempotency_key text,
    dedup_key text,
    dedup jobq_private.dedup,
    cancel_reason text,
    last_error_code text,
    last_error jobq_private.last_error,
    last_error_details jsonb,
    keep interval[],
    metadata jsonb not null default '{}',
    progress jsonb,
    payload jsonb not null default '{}',
    constraint job_pkey primary key (job_id),
    constraint job_transition_fkey foreign key (lane, previous_state, state)
    references jobq_private.transition_lane (lane, from_state, to_state)
)
with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

comment on table jobq_private.job is 'Live jobs: queued, running, retrying, or blocked until other jobs have ended.';

create index job_ready_idx on jobq_private.job (queue, priority desc, run_at, job_id)
where state in ('queued', 'retrying') and lane_id is null;

create index job_lane_idx on jobq_private.job (queue, lane_id, priority, run_at, job_id)
where state in ('queued', 'retrying') and lane_id is not null;

create unique index job_place_idx on jobq_private.job (queue, lane_id, place)
where place is not null;

create index job_lease_idx on jobq_private.job (lease_expires_at)
where state = 'running';

create index job_expiry_idx on jobq_private.job (expires_at)
where expires_at is not null and state in ('queued', 'retrying');

-- Jobs that look at no other (dedup is null) stand in it beside those that do, of which one alone
-- is there for each key: they differ by their ids, and nulls do not.
create unique index job_dedup_idx
on jobq_private.job (kind, dedup_key, (case when dedup is null then job_id end))
nulls not distinct
where dedup_key is not null;

create unique index job_schedule_idx on jobq_private.job (schedule_id, slot_at)
where schedule_id is not null;

create index job_blocked_idx on jobq_private.job (queue)
where state = 'blocked';

create index job_batch_idx on jobq_private.job (batch_id)
where batch_id is not null;

create table jobq_private.idempotency_key (
    kind text not null,
    idempotency_key text not null,
    job_id uuid not null,
    created_at timestamptz not null default now(),
    constraint idempotency_key_pkey primary key (kind, idempotency_key)
);

create index idempotency_key_created_at_idx on jobq_private.idempotency_key (created_at);

create table jobq_private.throttle (
    kind text not null,
    dedup_key text not null,
    job_id uuid not null,
    until timestamptz not null,
    constraint throttle_pkey primary key (kind, dedup_key)
);

create index throttle_until_idx on jobq_private.throttle (until);

comment on table jobq_private.throttle is 'The last job that each throttled dedup key of a kind has made, and until when it makes no other.';

comment on table jobq_private.idempotency_key is 'The job that each idempotency key of a kind has made.';

-- What has happened: append-only, partitioned by day, dropped a day at a time. The default
-- partitions take what comes on a day that nobody has made ready. The lane is null for a job that
-- has succeeded, as nearly all do: a check says that then the change is running to succeeded,
-- which costs less than to look that up among the transitions.
create table jobq_private.job_archive (
    like jobq_private.job including defaults,
    finished_at timestamptz not null,
    result jsonb,
    prune_at timestamptz,
    constraint job_archive_pkey primary key (job_id, finished_at),
    constraint job_archive_transition_fkey foreign key (lane, previous_state, state)
    references jobq_private.transition_lane (lane, from_state, to_state),
    constraint job_archive_lane_check
    check (lane is not null or (previous_state = 'running' and state = 'succeeded'))
)
partition by range (finished_at);

-- squawk-ignore ban-drop-not-null
alter table jobq_private.job_archive alter column lane drop not null;
-- squawk-ignore adding-not-nullable-field
alter table jobq_private.job_archive alter column previous_state set not null;

create index job_archive_state_idx
on jobq_private.job_archive (state, job_id) include (queue, kind, last_error_code)
where state <> 'succeeded';

create index job_archive_finished_at_idx
on jobq_private.job_archive using brin (finished_at) with (autosummarize = on);

create index job_archive_schedule_idx
on jobq_private.job_archive (schedule_id, slot_at) where schedule_id is not null;

create index job_archive_prune_idx
on jobq_private.job_archive (prune_at) where prune_at is not null;

create index job_archive_delivery_idx on jobq_private.job_archive (kind, finished_at)
where delivery_version is not null and state = 'succeeded';

create index job_archive_batch_idx
on jobq_private.job_archive (batch_id, state) where batch_id is not null;

comment on table jobq_private.job_archive is 'Finished jobs, a partition for each day.';

create table jobq_private.attempt (
    job_id uuid not null,
    attempt integer not null,
    state text collate "C" not null,
    started_at timestamptz not null,
    finished_at timestamptz not null,
    worker text,
    error_code text,
    error text,
    error_details jsonb,
    endpoint text,
    region text not null default 'default',
    constraint attempt_pkey primary key (job_id, attempt, finished_at)
)
partition by range (finished_at);

create index attempt_finished_at_idx
on jobq_private.attempt using brin (finished_at) with (autosummarize = on);

create index attempt_endpoint_idx on jobq_private.attempt (endpoint, finished_at)
where endpoint is not null;

comment on table jobq_private.attempt is 'Every attempt that did not succeed, with the state it left the job in.';

create sequence jobq_private.job_log_sequence;

create table jobq_private.job_log (
    job_id uuid not null,
    attempt integer not null,
    logged_at timestamptz not null default clock_timestamp(),
    sequence bigint not null default nextval('jobq_private.job_log_sequence'),
    level text not null,
    message text not null,
    region text not null default 'default',
    constraint job_log_pkey primary key (job_id, sequence, logged_at),
    constraint job_log_level_check check (level in ('DEBUG', 'INFO', 'WARN', 'ERROR')),
    constraint job_log_message_check check (length(message) <= 8192)
)
partition by range (logged_at);

comment on table jobq_private.job_log is 'Lines that handlers have logged for a job.';

create table jobq_private.job_archive_default partition of jobq_private.job_archive default;
create table jobq_private.attempt_default partition of jobq_private.attempt default;
create table jobq_private.job_log_default partition of jobq_private.job_log default;

create type jobq_private.new_job as (
    ordinal integer,
    kind text,
    payload jsonb,
    queue text,
    run_at timestamptz,
    priority integer,
    max_attempts integer,
    timeout interval,
    idempotency_key text,
    dedup_key text,
    dedup text,
    metadata jsonb,
    schedule_id uuid,
    slot_at timestamptz,
    concurrency_key text,
    expires_at timestamptz,
    after uuid[],
    after_failure text,
    batch_id uuid,
    -- the batch whose end it waits for
    callback_of uuid,
    -- whether jobs of the same call wait for it
    is_awaited boolean
);

comment on type jobq_private.new_job is 'A job as a caller asks for it; null means the default.';

create type jobq_private.ending as (
    queue text,
    job_id uuid,
    batch_id uuid,
    is_awaited boolean
);

comment on type jobq_private.ending is 'The end of a job that others wait for, or a member of a batch.';

reset role;

-- Deploy jobq:cron_types to pg
-- A parsed cron expression: sets of numbers as bits, so that the search for the next firing
-- is a few shifts. jobq_private.cron_parse makes one; years alone may be null.
set local role jobq_owner;

create type jobq_private.cron as (
    -- bit n: the second, minute, hour or month n
    seconds bigint,
    minutes bigint,
    hours bigint,
    months bigint,
    -- bit n: day n + 1 of the month (15), and the weekday nearest to it (15W)
    days bigint,
    near_days bigint,
    -- bit 30 - n: the n-th day before the last of the month (L, L-3), and its W
    last_days bigint,
    near_last_days bigint,
    -- bit 7 * (n - 1) + w: the n-th weekday w of the month, Sunday being 0; MON sets five
    weekdays bigint,
    -- bit w: the last weekday w of the month
    last_weekdays bigint,
    -- ascending; null for every year
    years integer[],
    -- both day fields are restricted, so that a day which either names will do
    is_either_day boolean,
    -- the second, minute or hour starts with *: it counts time passing, not clock readings
    is_interval boolean
);

comment on type jobq_private.cron is
'A cron expression as jobq_private.cron_parse returns it and jobq_private.cron_next takes it.';

reset role;

-- Deploy jobq:work_tables to pg
set local role jobq_owner;

-- Who is working, and the stub of regions.
create table jobq_private.worker (
    worker text not null,
    queues text[] not null,
    except_kinds text[] not null default '{}',
    started_at timestamptz not null default now(),
    seen_at timestamptz not null default now(),
    region text not null default 'default',
    login text not null default session_user,
    release text,
    constraint worker_release_check check (length(release) between 1 and 200),
    constraint worker_pkey primary key (worker)
)
with (fillfactor = 50);

comment on table jobq_private.worker is 'Workers and their last heartbeat. Leases never depend on it.';

create table jobq_private.region_status (
    region text not null,
    is_alive boolean not null default true,
    failed_at timestamptz,
    adopted_by text,
    updated_at timestamptz not null default now(),
    constraint region_status_pkey primary key (region)
);

comment on table jobq_private.region_status is 'Regions; there is one, and nothing fails over yet.';

insert into jobq_private.region_status (region) values ('default');

create table jobq_private.failed_task (
    task text not null,
    sqlstate text not null,
    error text not null,
    failed_at timestamptz not null default now(),
    failures bigint not null default 1,
    constraint failed_task_pkey primary key (task)
);

comment on table jobq_private.failed_task is 'Tasks of maintenance that failed when they were last due.';

create type jobq.claimed_job as (
    job_id uuid,
    attempt integer,
    kind text,
    payload jsonb,
    metadata jsonb,
    queue text,
    max_attempts integer,
    timeout interval,
    lease_expires_at timestamptz,
    run_at timestamptz,
    created_at timestamptz,
    idempotency_key text,
    lease interval,
    delivery_version integer
);

comment on type jobq.claimed_job is 'A job as its worker receives it; attempt is the fencing token of every later call.';

create type jobq_private.claim_mark as (
    queue text,
    priority integer,
    run_at timestamptz,
    job_id uuid,
    -- what the looks at the head of the queue took, and how many in a row were slow
    took interval,
    slow_looks integer,
    look_at timestamptz,
    is_look boolean
);

comment on type jobq_private.claim_mark is 'Where a claim goes on in a queue.';

create type jobq_private.failure as (
    job_id uuid,
    attempt integer,
    error text,
    error_code text,
    retryable boolean,
    retry_in interval,
    details jsonb
);

comment on type jobq_private.failure is 'A failed attempt as its worker reports it.';

reset role;

-- Deploy jobq:delivery_tables to pg
-- What deliveries are made of: payload specs, configs, secrets, endpoints, and all their
-- versions. Secrets are encrypted before they get here.
set local role jobq_owner;

create table jobq_private.payload_spec (
    payload_spec text not null,
    schema jsonb not null,
    version integer not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint payload_spec_pkey primary key (payload_spec),
    constraint payload_spec_payload_spec_check
    check (payload_spec ~ '^[a-z0-9][a-z0-9_-]{0,127}$'),
    constraint payload_spec_schema_check check (jsonb_typeof(schema) = 'object')
);

comment on table jobq_private.payload_spec is 'JSON Schemas of what endpoints take.';

create table jobq_private.config (
    config text not null,
    entries jsonb not null,
    version integer not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint config_pkey primary key (config),
    constraint config_config_check check (config ~ '^[a-z0-9][a-z0-9_-]{0,127}$'),
    constraint config_entries_check check (jsonb_typeof(entries) = 'object')
);

comment on table jobq_private.config is 'Values that the templates of endpoints refer to.';

create table jobq_private.secret (
    secret text not null,
    ciphertext bytea not null,
    key_id text not null,
    version integer not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint secret_pkey primary key (secret),
    constraint secret_secret_check check (secret ~ '^[a-z0-9][a-z0-9_-]{0,127}$'),
    constraint secret_ciphertext_check check (octet_length(ciphertext) between 28 and 65564),
    constraint secret_key_id_check check (length(key_id) between 1 and 64)
);

comment on table jobq_private.secret is 'Secrets of endpoints, encrypted under a key that is never here.';

create table jobq_private.endpoint (
    endpoint text not null,
    type text not null,
    payload_spec text,
    config text,
    spec jsonb not null,
    max_concurrency integer,
    max_per_second double precision,
    paused_at timestamptz,
    pause_reason text,
    test_job_id uuid,
    version integer not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint endpoint_pkey primary key (endpoint),
    constraint endpoint_endpoint_check check (endpoint ~ '^[a-z0-9][a-z0-9-]{0,127}$'),
    constraint endpoint_type_check check (type in ('HTTP', 'KAFKA', 'REDIS_STREAM')),
    constraint endpoint_spec_check check (jsonb_typeof(spec) = 'object'),
    constraint endpoint_max_concurrency_check check (max_concurrency between 1 and 10000),
    constraint endpoint_max_per_second_check check (max_per_second between 0.001 and 1000000),
    constraint endpoint_endpoint_fkey foreign key (endpoint)
    references jobq_private.kind (kind) on delete cascade,
    constraint endpoint_payload_spec_fkey foreign key (payload_spec)
    references jobq_private.payload_spec (payload_spec),
    constraint endpoint_config_fkey foreign key (config)
    references jobq_private.config (config)
);

comment on table jobq_private.endpoint is 'Kinds whose handler is a delivery: where to, and in what shape.';

-- What a claim has found of paused endpoints. Each is due at parked_until(), and gets this
-- run_at back.
create table jobq_private.parked_job (
    job_id uuid not null,
    endpoint text not null,
    run_at timestamptz not null,
    constraint parked_job_pkey primary key (job_id),
    constraint parked_job_endpoint_fkey foreign key (endpoint)
    references jobq_private.endpoint (endpoint) on delete cascade
);

create index parked_job_endpoint_idx on jobq_private.parked_job (endpoint);

comment on table jobq_private.parked_job is 'When the jobs were due that wait for their endpoint to be resumed.';

create table jobq_private.endpoint_secret (
    endpoint text not null,
    secret text not null,
    constraint endpoint_secret_pkey primary key (endpoint, secret),
    constraint endpoint_secret_endpoint_fkey foreign key (endpoint)
    references jobq_private.endpoint (endpoint) on delete cascade,
    constraint endpoint_secret_secret_fkey foreign key (secret)
    references jobq_private.secret (secret)
);

comment on table jobq_private.endpoint_secret is 'The secrets that an endpoint refers to.';

-- Which payload specs and configs the versions of an endpoint refer to, the old ones too: jobs
-- may still be delivered by them.
create table jobq_private.pinned_definition (
    endpoint text not null,
    type text not null,
    name text not null,
    constraint pinned_definition_pkey primary key (endpoint, type, name),
    constraint pinned_definition_endpoint_fkey foreign key (endpoint)
    references jobq_private.endpoint (endpoint) on delete cascade
);

comment on table jobq_private.pinned_definition is 'The payload specs and configs that any version of an endpoint refers to.';

create table jobq_private.definition_version (
    type text not null,
    name text not null,
    version integer not null,
    document jsonb not null,
    created_at timestamptz not null default now(),
    constraint definition_version_pkey primary key (type, name, version)
);

comment on table jobq_private.definition_version is 'Every version of every payload spec, config and endpoint, and when each secret changed.';

reset role;

-- Deploy jobq:schedule_tables to pg
-- Recurring jobs: a row for each version. The next slot is stored, so that a restart
-- loses none; last_tick_at only grows, and next_run_at lies behind it, so that no slot
-- fires again, however long ago its job was forgotten.
set local role jobq_owner;

create table jobq_private.schedule (
    schedule_id uuid not null,
    name text not null,
    version integer not null default 1,
    previous_version_id uuid,
    replaced_by_id uuid,
    status text collate "C" not null default 'active',
    kind text not null,
    queue text,
    payload jsonb not null,
    metadata jsonb not null,
    graph jsonb,
    priority integer,
    max_attempts integer,
    timeout interval,
    cron text,
    parsed jobq_private.cron,
    every interval,
    from_completion boolean not null,
    time_zone text not null,
    gap text not null,
    fold text not null,
    missed text not null,
    catch_up interval,
    dedup text not null,
    dedup_key text,
    concurrency_key text,
    jitter interval not null,
    starts_at timestamptz,
    ends_at timestamptz,
    next_run_at timestamptz,
    awaited_job_id uuid,
    last_tick_at timestamptz,
    paused_at timestamptz,
    pause_reason text,
    region text not null default 'default',
    created_at timestamptz not null default now(),
    retired_at timestamptz,
    constraint schedule_pkey primary key (schedule_id),
    constraint schedule_version_key unique (name, version),
    constraint schedule_previous_version_id_fkey foreign key (previous_version_id)
    references jobq_private.schedule (schedule_id),
    constraint schedule_replaced_by_id_fkey foreign key (replaced_by_id)
    references jobq_private.schedule (schedule_id),
    constraint schedule_status_check check (status in ('active', 'paused', 'retired')),
    constraint schedule_paused_at_check
    check ((status = 'paused') = (paused_at is not null) or status = 'retired'),
    constraint schedule_retired_at_check
    check (
        (status = 'retired') = (retired_at is not null)
        and (status <> 'retired' or num_nonnulls(next_run_at, awaited_job_id) = 0)
    ),
    constraint schedule_every_check
    check (
        num_nonnulls(cron, every) = 1
        and (cron is null) = (parsed is null)
        and (every is not null or not from_completion)
    ),
    constraint schedule_missed_check check (missed in ('all', 'latest', 'none')),
    constraint schedule_dedup_check
    check (
        dedup in ('skip', 'enqueue', 'replace')
        and (dedup = 'enqueue' or dedup_key is not null)
    ),
    constraint schedule_next_run_at_check
    check (next_run_at > last_tick_at and next_run_at < coalesce(ends_at, 'infinity')),
    constraint schedule_awaited_job_id_check
    check (awaited_job_id is null or (from_completion and next_run_at is null))
)
with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000
);

comment on table jobq_private.schedule is 'Recurring jobs, a row for each version.';

create unique index schedule_name_idx on jobq_private.schedule (name)
where status <> 'retired';

create index schedule_due_idx on jobq_private.schedule (next_run_at)
where status = 'active' and next_run_at is not null;

create index schedule_awaited_idx on jobq_private.schedule (awaited_job_id)
where status = 'active' and awaited_job_id is not null;

reset role;

-- Deploy jobq:http_tables to pg
-- Keys of the HTTP API. The key itself is never here, only its SHA-256.
set local role jobq_owner;

create table jobq_private.api_key (
    api_key text not null,
    prefix text not null,
    key_hash bytea not null,
    scopes text[] not null,
    requests_per_second integer,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    login text not null default session_user,
    constraint api_key_pkey primary key (api_key),
    constraint api_key_key_hash_key unique (key_hash),
    constraint api_key_api_key_check check (length(api_key) between 1 and 128),
    constraint api_key_prefix_check check (length(prefix) between 1 and 16),
    constraint api_key_key_hash_check check (octet_length(key_hash) = 32),
    constraint api_key_scopes_check
    check (scopes <@ '{produce,work,operate,read}' and cardinality(scopes) > 0),
    constraint api_key_requests_per_second_check check (requests_per_second >= 1)
)
with (fillfactor = 50);

comment on table jobq_private.api_key is 'Keys of the HTTP API by name, as SHA-256, with what they may do.';

reset role;

-- Deploy jobq:audit_tables to pg
-- What operators have done. Append-only: a trigger refuses everything else.
set local role jobq_owner;

create table jobq_private.audit (
    audit_id bigint generated always as identity,
    acted_at timestamptz not null default clock_timestamp(),
    actor text not null default session_user,
    application text not null default current_setting('application_name'),
    action text not null,
    subject text not null,
    reason text,
    acting_for text default left(nullif(current_setting('jobq.acting_for', true), ''), 256),
    constraint audit_pkey primary key (audit_id)
);

comment on table jobq_private.audit is 'What operators have done to jobs, queues, grants, keys and secrets; append-only.';

reset role;

-- Deploy jobq:grant_tables to pg
-- Which queues a role may use, once grants by queue are enforced, and which queue each
-- declared kind belongs to. No row-level security here: the policies read both.
set local role jobq_owner;

create table jobq_private.queue_grant (
    grantee regrole not null,
    queue text not null,
    privilege text not null,
    constraint queue_grant_pkey primary key (grantee, queue, privilege),
    constraint queue_grant_queue_check check (length(queue) between 1 and 128),
    constraint queue_grant_privilege_check check (privilege in ('enqueue', 'work'))
);

comment on table jobq_private.queue_grant is 'Which queues a role may use; * stands for all of them.';

create table jobq_private.kind_queue (
    kind text not null,
    queue text not null,
    constraint kind_queue_pkey primary key (kind)
);

comment on table jobq_private.kind_queue is 'The queue that a kind belongs to: a copy of what kinds declare, which policies may read.';

reset role;

-- Deploy jobq:workflow_tables to pg
-- What a job has done so far, and what it waits for. None of it is touched by a job that
-- has no steps, depends on no other and is in no batch: nothing here refers to the tables of
-- jobs.
set local role jobq_owner;

create table jobq_private.step (
    job_id uuid not null,
    name text collate "C" not null,
    value jsonb not null,
    attempt integer not null,
    saved_at timestamptz not null default clock_timestamp(),
    constraint step_pkey primary key (job_id, name)
);

comment on table jobq_private.step is 'What the steps of jobs have come to; an attempt that comes later does not run them again.';

-- A signal is an event for one job; the job_id of all others is zero.
create table jobq_private.event (
    event text collate "C" not null,
    job_id uuid not null default '00000000-0000-0000-0000-000000000000',
    payload jsonb not null,
    emitted_at timestamptz not null default now(),
    constraint event_pkey primary key (event, job_id)
);

create index event_emitted_at_idx on jobq_private.event (emitted_at);

comment on table jobq_private.event is 'What was emitted, kept for those that come to wait for it.';

create table jobq_private.waiter (
    job_id uuid not null,
    event text collate "C" not null,
    deadline timestamptz not null,
    since timestamptz not null default now(),
    constraint waiter_pkey primary key (job_id, event)
);

create index waiter_event_idx on jobq_private.waiter (event, job_id);

create index waiter_since_idx on jobq_private.waiter (since);

comment on table jobq_private.waiter is 'Which jobs wait for which events; each is queued, and due at its deadline.';

-- What a transaction with one snapshot has emitted, or waits for: it cannot see what others
-- have done since.
create table jobq_private.late_event (
    late_event_id bigint generated always as identity,
    event text collate "C" not null,
    job_id uuid not null,
    constraint late_event_pkey primary key (late_event_id)
);

comment on table jobq_private.late_event is 'Events and waits that maintain() has yet to bring together.';

-- Which job waits for which; what is no longer waited for stays, to be shown.
create table jobq_private.edge (
    child uuid not null,
    parent uuid not null,
    after_failure text collate "C" not null,
    is_open boolean not null default true,
    constraint edge_pkey primary key (child, parent),
    constraint edge_child_check check (child <> parent),
    constraint edge_after_failure_check check (after_failure in ('cancel', 'wait', 'run'))
)
with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

create index edge_parent_idx on jobq_private.edge (parent, child);

create index edge_open_idx on jobq_private.edge (child) where is_open;

comment on table jobq_private.edge is 'Which job waits for which; an open edge holds its child up.';

-- What resolve() has yet to look at: parents that have ended, children that have come to
-- wait, batches of which a member has ended. Nearly always empty.
create table jobq_private.look (
    look_id bigint generated always as identity,
    about text collate "C" not null,
    id uuid not null,
    created_at timestamptz not null default clock_timestamp(),
    look_at timestamptz not null default '-infinity',
    constraint look_pkey primary key (look_id),
    constraint look_about_check check (about in ('parent', 'child', 'batch'))
)
with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);

comment on table jobq_private.look is 'Jobs and batches of which something has ended, and nobody has looked yet what follows.';

-- The jobs of graphs, by the names that they have there.
create table jobq_private.node (
    job_id uuid not null,
    graph_id uuid not null,
    name text not null,
    constraint node_pkey primary key (job_id),
    constraint node_name_key unique (graph_id, name)
);

comment on table jobq_private.node is 'The jobs of graphs, and their names.';

create type jobq_private.arrow as (child integer, parent integer);

comment on type jobq_private.arrow is 'That one job of a graph waits for another, by their places.';

create table jobq_private.batch (
    batch_id uuid not null,
    on_success uuid,
    on_end uuid,
    on_first_death uuid,
    queue text not null,
    opened_at timestamptz not null default now(),
    sealed_at timestamptz,
    ended_at timestamptz,
    constraint batch_pkey primary key (batch_id)
)
with (fillfactor = 70);

create index batch_opened_at_idx on jobq_private.batch (opened_at);

comment on table jobq_private.batch is 'Jobs that belong together, and the jobs that wait for their end.';

reset role;

-- Deploy jobq:limit_tables to pg
set local role jobq_owner;

-- A lane is a queue and a concurrency key, or for jobs without a key of a kind that has
-- limits the queue and the kind. It has a row for each priority in which work may
-- be had from it, whose lock is the right to claim there; no row says that none waits.
create table jobq_private.lane (
    lane_id uuid not null,
    priority smallint not null,
    queue text not null,
    concurrency_key text,
    state text collate "C" not null default 'open',
    open_at timestamptz not null default '-infinity',
    gate_id uuid,
    constraint lane_pkey primary key (lane_id, priority),
    constraint lane_state_check check (state in ('open', 'full', 'later'))
)
with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

comment on table jobq_private.lane is 'Lanes with work: open; full until a job of theirs ends, or until the gate of a kind has room; or closed until a time. Who finds a lane full or empty closes it.';

create index lane_open_idx on jobq_private.lane (queue, priority, lane_id)
where state = 'open';

create index lane_open_at_idx on jobq_private.lane (queue, open_at)
where state <> 'full';

create index lane_gate_idx on jobq_private.lane (queue, gate_id)
where gate_id is not null;

create index lane_gate_id_idx on jobq_private.lane (gate_id)
where gate_id is not null;

-- What asks for a lane to be opened. Rows are only added and taken away, so that no producer
-- waits for another.
create table jobq_private.lane_call (
    queue text not null,
    lane_id uuid not null,
    concurrency_key text,
    priority smallint,
    call_id bigint generated always as identity,
    constraint lane_call_pkey primary key (queue, call_id)
)
with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

comment on table jobq_private.lane_call is 'Calls to open a lane: there is work of a priority, or (null) room.';

-- What single keys may, in place of what their queue says for each key.
create table jobq_private.key_limit (
    queue text not null,
    concurrency_key text not null,
    max_running integer,
    rate_limit integer,
    rate_period interval,
    rate_burst integer,
    updated_at timestamptz not null default now(),
    constraint key_limit_pkey primary key (queue, concurrency_key),
    constraint key_limit_queue_check check (length(queue) between 1 and 128),
    constraint key_limit_concurrency_key_check
    check (octet_length(concurrency_key) between 1 and 1024),
    constraint key_limit_max_running_check check (max_running between 1 and 32767),
    constraint key_limit_rate_limit_check check (rate_limit between 1 and 1000000),
    constraint key_limit_rate_period_check
    check (rate_period between '1 ms' and '365 days'),
    constraint key_limit_rate_burst_check check (rate_burst between 1 and 32767),
    constraint key_limit_rate_check
    check (rate_limit is not null or num_nonnulls(rate_period, rate_burst) = 0),
    constraint key_limit_something_check check (num_nonnulls(max_running, rate_limit) > 0)
);

create index key_limit_rate_idx on jobq_private.key_limit (queue)
where rate_limit is not null;

comment on table jobq_private.key_limit is 'Limits of single keys.';

-- Where jobs pass that rates, holds or the limits of a whole queue or kind bind: of a lane
-- (by its id), a queue, a kind, or a kind in a queue. Its lock is the right to pass. A gate that
-- nobody has passed has no row, but that of a kind, at which claims see that there is one.
create table jobq_private.gate (
    gate_id uuid not null,
    queue text,
    kind text,
    passed_until timestamptz not null default '-infinity',
    held_until timestamptz not null default '-infinity',
    hold_reason text,
    concurrency_key text,
    head_job_id uuid,
    constraint gate_pkey primary key (gate_id),
    constraint gate_hold_reason_check check (length(hold_reason) <= 512)
)
with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

comment on table jobq_private.gate is 'What a rate has let pass, as the time until which that is spent; until when a key or kind is held, and which; and the last job of an ordered lane.';

create index gate_held_idx on jobq_private.gate (queue, held_until)
where held_until > '-infinity';

create index gate_kind_idx on jobq_private.gate (kind, queue) where kind is not null;

-- What each claim must know of, in a table that is empty as a rule, since a look at one without an
-- index reads no page: the gates of kinds, once more; and with null, that somebody must give places
-- to what runs.
create table jobq_private.kind_gate (
    gate_id uuid
);

-- So that its rows can be deleted under a publication for all tables.
alter table jobq_private.kind_gate replica identity full;

comment on table jobq_private.kind_gate is 'Which gates are those of kinds, made from gate; null where what runs may lack places.';

-- When limits were changed last: of queues by 256 slots, of kinds in slot 256. A repeatable snapshot
-- that is older can lock its rows no more.
create table jobq_private.limit_change (
    slot smallint not null,
    changed_at timestamptz not null default '-infinity',
    constraint limit_change_pkey primary key (slot)
)
with (fillfactor = 50);

insert into jobq_private.limit_change (slot)
select n.slot from generate_series(0, 256) as n (slot);

comment on table jobq_private.limit_change is 'When limits were changed last, so that a snapshot that has not seen it starts no job.';

-- What holds for a lane: microseconds from one start to the next, and how many may start at
-- once.
create type jobq_private.lane_rule as (
    max_running integer,
    spacing bigint,
    burst integer,
    is_ordered boolean,
    holds_on_dead boolean
);

comment on type jobq_private.lane_rule is 'What holds for a lane.';

create type jobq_private.lane_batch as (
    jobs tid[],
    places smallint[],
    idle jobq_private.lane[]
);

comment on type jobq_private.lane_batch is 'What a claim takes from lanes, and the lanes that had nothing.';

reset role;

-- Deploy jobq:shard_tables to pg
set local role jobq_owner;

-- The databases of a cluster. All of them, and its router, hold the same rows but for is_own.
create table jobq_private.shard (
    shard_id integer not null,
    url text not null,
    is_own boolean not null default false,
    constraint shard_pkey primary key (shard_id),
    constraint shard_shard_id_check check (shard_id between 0 and 255),
    constraint shard_url_check check (length(url) between 1 and 2048)
);

create unique index shard_is_own_key on jobq_private.shard (is_own)
where is_own;

comment on table jobq_private.shard is 'The databases of a cluster, and which of them this is.';

-- From when on which shards get new keys. Earlier ones are kept: keys may be where they led.
create table jobq_private.shard_epoch (
    epoch integer not null,
    shard_ids integer[] not null,
    began_at timestamptz not null default now(),
    constraint shard_epoch_pkey primary key (epoch),
    constraint shard_epoch_epoch_check check (epoch >= 1),
    constraint shard_epoch_shard_ids_check check (cardinality(shard_ids) between 1 and 256)
);

comment on table jobq_private.shard_epoch is 'From when on which shards get new keys.';

-- How each public function answers in a cluster, for routers and for clients of several databases:
--   key       a new job: on the shard that its keys choose
--   lot       what has no key: on any shard that gets new keys; detail names an argument whose id decides
--   id        on the shard of the id in the argument that detail names
--   schedule  on the shard of the schedule that this argument names, by its id or name
--   every     on all shards; the answer is any true, the sum of counts, or the first
--   any       on one shard, as all answer alike
--   all       on all shards; detail makes one answer of their rows, which are `answers`
--   some      where job_ids says, or from shard to shard until the argument in detail is reached
--   split     by shard, and put together in the order of the argument that detail names
--   own       by the router itself
--   refused   not in a cluster, for the reason in detail
create table jobq_private.route (
    function_name text not null,
    class text not null,
    detail text not null,
    constraint route_pkey primary key (function_name),
    constraint route_class_check check (class in (
        'key', 'lot', 'id', 'schedule', 'every', 'any', 'all', 'some', 'split', 'own', 'refused'
    ))
);

comment on table jobq_private.route is 'How each public function answers in a cluster.';

insert into jobq_private.route (function_name, class, detail)
values
('choose_shard', 'own', ''),
('list_epochs', 'own', ''),
('list_shards', 'own', ''),
('shard_of', 'own', ''),
('put_epoch', 'own', 'router.sql'),
('put_shard', 'own', 'router.sql'),
('enqueue', 'key', ''),
('open_batch', 'lot', ''),
('test_endpoint', 'lot', ''),
('enqueue_graph', 'lot', 'graph_of'),
('cancel', 'id', 'job_id'),
('cancel_tree', 'id', 'job_id'),
('claim_job', 'id', 'job_id'),
('complete', 'id', 'job_id'),
('confirm_cancel', 'id', 'job_id'),
('explain', 'id', 'job_id'),
('fail', 'id', 'job_id'),
('get_job', 'id', 'job_id'),
('hold_lane', 'id', 'job_id'),
('list_attempts', 'id', 'job_id'),
('list_inputs', 'id', 'job_id'),
('list_logs', 'id', 'job_id'),
('list_steps', 'id', 'job_id'),
('log', 'id', 'job_id'),
('rate_limited', 'id', 'job_id'),
('redrive', 'id', 'job_id'),
('redrive_tree', 'id', 'job_id'),
('release', 'id', 'job_id'),
('save_step', 'id', 'job_id'),
('set_progress', 'id', 'job_id'),
('show_graph', 'id', 'job_id'),
('signal', 'id', 'job_id'),
('wait_for', 'id', 'job_id'),
('batch_status', 'id', 'batch_id'),
('cancel_batch', 'id', 'batch_id'),
('seal_batch', 'id', 'batch_id'),
('create_schedule', 'schedule', 'name'),
('backfill_schedule', 'schedule', 'schedule'),
('get_schedule', 'schedule', 'schedule'),
('list_schedule_versions', 'schedule', 'schedule'),
('pause_schedule', 'schedule', 'schedule'),
('preview_schedule', 'schedule', 'schedule'),
('resume_schedule', 'schedule', 'schedule'),
('retire_schedule', 'schedule', 'schedule'),
('run_schedule', 'schedule', 'schedule'),
('schedule_status', 'schedule', 'schedule'),
('update_schedule', 'schedule', 'schedule'),
('configure', 'every', ''),
('delete_definition', 'every', ''),
('delete_kind', 'every', ''),
('delete_limit', 'every', ''),
('delete_queue', 'every', ''),
('emit', 'every', ''),
('enforce_queue_grants', 'every', ''),
('grant_queue', 'every', ''),
('hold_key', 'every', ''),
('pause_endpoint', 'every', ''),
('pause_queue', 'every', ''),
('put_config', 'every', ''),
('put_endpoint', 'every', ''),
('put_kind', 'every', ''),
('put_limit', 'every', ''),
('put_payload_spec', 'every', ''),
('put_queue', 'every', ''),
('put_secret', 'every', ''),
('release_key', 'every', ''),
('resume_endpoint', 'every', ''),
('resume_queue', 'every', ''),
('retire_worker', 'every', ''),
('revoke_queue', 'every', ''),
('rotate_secret', 'every', ''),
('backoff', 'any', ''),
('list_ciphertexts', 'any', ''),
('list_kinds', 'any', ''),
('list_payload_schemas', 'any', ''),
('list_queue_grants', 'any', ''),
('list_queues', 'any', ''),
('list_versions', 'any', ''),
('next_tick', 'any', ''),
('page_definitions', 'any', ''),
('preview_cron', 'any', ''),
('settings', 'any', ''),
('show_definition', 'any', ''),
('list_workers', 'all', ''),
('recover', 'all', ''),
('tick', 'all', ''),
('maintain', 'all', ''),
('health', 'all', ''),
('find_job', 'all',
    'select job_id from answers as a (job_id) where job_id is not null limit 1'),
('list_jobs', 'all',
    'select a.* from answers as a where a.job_id >= coalesce((select m.job_id from answers as m'
    || ' where m.state is null order by m.job_id desc limit 1), ''00000000-0000-0000-0000-000000000000'')'
    || ' order by a.job_id desc limit max_jobs'),
('list_undeclared_kinds', 'all', 'select distinct a.* from answers as a order by 1'),
('list_schedules', 'all',
    'select * from answers order by schedule_id desc limit max_schedules'),
('list_limits', 'all',
    'select queue, concurrency_key, max_running, rate_limit, rate_period, '
    || 'rate_burst, sum(running)::bigint, max(updated_at) from answers group by 1, 2, '
    || '3, 4, 5, 6 order by 1, 2'),
('metrics', 'all',
    'select name, queue, case when name ~ ''seconds|rate'' then max(value) else '
    || 'sum(value) end from answers group by 1, 2 order by 1, 2'),
('queue_stats', 'all',
    'select queue, sum(queued)::bigint, sum(scheduled)::bigint, '
    || 'sum(running)::bigint, sum(retrying)::bigint, sum(dead)::bigint, '
    || 'max(oldest_runnable), sum(finished_last_minute)::bigint, bool_and(is_paused), '
    || 'sum(lanes)::bigint, sum(closed_lanes)::bigint, bool_and(is_exact), '
    || 'sum(blocked)::bigint from answers group by 1 order by 1'),
('ready', 'all', 'select max(queue), max(repo) from answers'),
('cancel_many', 'some', 'max_jobs'),
('change_many', 'some', 'max_jobs'),
('delete_many', 'some', 'max_jobs'),
('redrive_many', 'some', 'max_jobs'),
('enqueue_many', 'split', 'jobs'),
('complete_many', 'split', 'job_ids'),
('release_many', 'split', 'job_ids'),
('save_steps', 'split', 'job_ids'),
('fail_many', 'split', 'failures'),
('claim', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('claim_calls', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('exchange', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('get_delivery', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('list_declarations', 'refused', 'each shard lists its own: jobq cluster check'),
('list_router_statements', 'refused', 'a shard writes them'),
('heartbeat', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('due_in', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('next_due', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('tick_in', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('run_calls', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('work', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('begin_wait', 'refused', 'who waits listens on the shard'),
('end_wait', 'refused', 'who waits listens on the shard'),
('wait', 'refused', 'who waits listens on the shard'),
('await_events', 'refused', 'who waits listens on the shard'),
('listen_events', 'refused', 'who waits listens on the shard'),
('act_for', 'refused',
    'it holds for the session, and the sessions on the shards are others'),
('advance_clock', 'refused', 'the clock is that of one database'),
('replica_lag', 'refused', 'each shard has standbys of its own'),
('endpoint_stats', 'refused', 'percentiles of several databases do not add up');

reset role;

-- Deploy jobq:health_tables to pg
-- The queue's own history, for charts: a row for each bucket, queue and kind, of buckets of
-- 1, 10 and 60 minutes. Bounded: few pairs a bucket, and each width is kept for a time.
set local role jobq_owner;

create table jobq_private.history (
    minutes smallint not null,
    bucket timestamptz not null,
    queue text not null,
    kind text not null,
    enqueued bigint not null default 0,
    succeeded bigint not null default 0,
    failed bigint not null default 0,
    dead bigint not null default 0,
    cancelled bigint not null default 0,
    constraint history_pkey primary key (minutes, bucket, queue, kind),
    constraint history_minutes_check check (minutes in (1, 10, 60))
);

comment on table jobq_private.history is 'How many jobs were made and ended in each stretch of time.';

-- counts[n] is how many jobs took from 2^((n-1)/2) to 2^(n/2) milliseconds.
create table jobq_private.latency (
    minutes smallint not null,
    bucket timestamptz not null,
    counts bigint[] not null,
    constraint latency_pkey primary key (minutes, bucket),
    constraint latency_minutes_check check (minutes in (1, 10, 60))
);

comment on table jobq_private.latency is 'How long jobs took that ended in each stretch of time.';

create table jobq_private.history_mark (
    is_singleton boolean not null default true,
    rolled_to timestamptz not null default date_trunc('minute', now()),
    constraint history_mark_pkey primary key (is_singleton),
    constraint history_mark_is_singleton_check check (is_singleton)
);

comment on table jobq_private.history_mark is 'Until when the history is rolled up.';

insert into jobq_private.history_mark default values;

create table jobq_private.waiting_count (
    queue text not null,
    queued bigint not null,
    scheduled bigint not null,
    retrying bigint not null,
    counted_at timestamptz not null,
    took interval not null,
    constraint waiting_count_pkey primary key (queue)
);

comment on table jobq_private.waiting_count is 'How many jobs waited in each long queue when they were counted last.';

reset role;

-- Deploy jobq:grant to pg
-- Made by sql/snapshot.py from sql/grant/: edit that.
set local role jobq_owner;

-- Purpose: refuse a grant by queue that cannot be meant, and find the role.
-- Invariant: reads only. Raises: 22004, 22023.
create or replace function jobq_private.check_queue_grant(
    grantee text, queue text, privilege text
)
returns regrole
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _grantee constant regrole := (
        select r.oid from pg_catalog.pg_roles as r
        where r.rolname = check_queue_grant.grantee
    );
begin
    if num_nulls(grantee, queue, privilege) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'grantee, queue and privilege');
    elsif _grantee is null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'grantee must be a role');
    elsif length(queue) not between 1 and 128 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'queue must have 1 to 128 characters'
        );
    elsif privilege not in ('enqueue', 'work') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'privilege must be enqueue or work'
        );
    end if;
    return _grantee;
end
$$;

revoke all on function jobq_private.check_queue_grant from public;

comment on function jobq_private.check_queue_grant is
'Refuses a grant by queue that cannot be meant, and returns the role.';

-- Purpose: the queues that whoever has logged in may use: one row, for the policies.
-- Invariant: decided by session_user, which only a superuser can change, and by the roles
-- whose privileges it has; no setting and no SET ROLE counts. Who may act as jobq_owner
-- holds all queues, since it could grant itself any. An array is null, and so lets nothing
-- pass, where there is none. Raises: nothing.
create or replace view jobq_private.held_queue as
select
    array_agg(g.queue) as any_of,
    array_agg(g.queue) filter (where g.privilege = 'enqueue') as enqueued,
    array_agg(g.queue) filter (where g.privilege = 'work') as worked
from (
    select q.queue, q.privilege
    from jobq_private.queue_grant as q
    where pg_has_role(session_user, q.grantee, 'usage')
    union all
    select '*', p.privilege
    from (values ('enqueue'), ('work')) as p (privilege)
    where pg_has_role(session_user, 'jobq_owner', 'usage')
) as g;

revoke all on table jobq_private.held_queue from public;

comment on view jobq_private.held_queue is
'The queues that whoever has logged in may see, add to and work.';

-- Purpose: keep, beside a kind that names its queue, to whom it belongs.
-- Invariant: policies must know of kinds that their reader may not see, and a policy on
-- kind hides those from every query; so they look here. Raises: nothing.
create or replace function jobq_private.copy_kind_queue()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op <> 'INSERT' then
        delete from jobq_private.kind_queue as o where o.kind = old.kind;
    end if;
    if tg_op <> 'DELETE' and new.queue is not null then
        insert into jobq_private.kind_queue (kind, queue) values (new.kind, new.queue);
    end if;
    return null;
end
$$;

revoke all on function jobq_private.copy_kind_queue from public;

comment on function jobq_private.copy_kind_queue is
'Keeps, beside a kind that names its queue, to whom it belongs.';

create or replace trigger kind_queue
after insert or update or delete on jobq_private.kind
for each row execute function jobq_private.copy_kind_queue();

-- Purpose: have every log-in see and touch only the queues that it holds by
-- grant_queue(), or, with false, all of them again, as at first.
-- Invariant: row-level security of every table that has a policy, forced, so that it
-- holds for jobq's own functions too; while it is off the policies cost nothing. Waits
-- for transactions under way, 5 s at most for each table. For jobq_owner alone.
-- Raises: 22004, 55P03.
-- Argument enforced: false ends it.
-- Example: select jobq.enforce_queue_grants();
create or replace function jobq.enforce_queue_grants(enforced boolean default true)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
declare
    _table text;
begin
    if enforced is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'enforced');
    end if;
    for _table in
        select distinct c.relname
        from pg_catalog.pg_policy as p
        join pg_catalog.pg_class as c on c.oid = p.polrelid
        where c.relnamespace = 'jobq_private'::regnamespace
        order by c.relname
    loop
        if enforced then
            execute format(
                'alter table jobq_private.%I enable row level security,'
                ' force row level security', _table
            );
        else
            execute format('alter table jobq_private.%I disable row level security', _table);
        end if;
    end loop;
    perform jobq_private.record_audit(
        'enforce_queue_grants', case when enforced then 'on' else 'off' end
    );
end
$$;

revoke all on function jobq.enforce_queue_grants from public;

comment on function jobq.enforce_queue_grants is
'Has every log-in see and touch only the queues that it holds; false ends that. For jobq_owner alone.';

-- Purpose: let a role use a queue, or '*' for all of them, once grants by queue are
-- enforced: enqueue to add, see and cancel its jobs, work for everything else.
-- Invariant: says which queues, as EXECUTE says which functions; a role needs both. For
-- jobq_owner alone. Granting again changes nothing. Raises: 22004, 22023.
-- Argument queue: the queue, or * for all of them.
-- Example: select jobq.grant_queue('jobq_producer', 'mail', 'enqueue');
create or replace function jobq.grant_queue(grantee text, queue text, privilege text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into jobq_private.queue_grant (grantee, queue, privilege)
    values (
        jobq_private.check_queue_grant(
            grant_queue.grantee, grant_queue.queue, grant_queue.privilege
        ),
        grant_queue.queue, grant_queue.privilege
    )
    on conflict do nothing;
end
$$;

revoke all on function jobq.grant_queue from public;

comment on function jobq.grant_queue is
'Lets a role use a queue, or * for all: privilege enqueue or work. For jobq_owner alone.';

-- Purpose: the grants by queue: all of them for who may act as jobq_owner, one's own for
-- everybody else.
-- Invariant: reads only; as held_queue, decided by who has logged in. Raises: nothing.
create or replace view jobq.queue_grant as
select g.grantee::text as grantee, g.queue, g.privilege
from jobq_private.queue_grant as g
where pg_has_role(session_user, g.grantee, 'usage')
or pg_has_role(session_user, 'jobq_owner', 'usage');

revoke all on table jobq.queue_grant from public;
grant select on jobq.queue_grant
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on view jobq.queue_grant is
'Which queues one may use once grants by queue are enforced; the owner sees everybody''s.';

-- Purpose: which queues log-ins may use once grants by queue are enforced.
-- Invariant: reads only; as jobq.queue_grant, decided by who has logged in. Raises:
-- nothing.
-- Column queue: the queue, or * for all of them.
-- Example: select * from jobq.list_queue_grants();
create or replace function jobq.list_queue_grants()
returns table (grantee text, queue text, privilege text)
language sql
stable
parallel restricted
security definer
set search_path = pg_catalog, pg_temp
as $$
    select g.grantee, g.queue, g.privilege
    from jobq.queue_grant as g
    order by g.grantee, g.queue, g.privilege
$$;

revoke all on function jobq.list_queue_grants from public;
grant execute on function jobq.list_queue_grants
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_queue_grants is
'Lists which queues one may use once grants by queue are enforced; the owner sees everybody''s.';

-- Purpose: take back what grant_queue() gave.
-- Invariant: holds for the next call of every session. For jobq_owner alone. Revoking
-- again changes nothing. Raises: 22004, 22023.
-- Argument grantee: the role; of one that was dropped, the number that stands in its place
-- in jobq.list_queue_grants().
-- Argument queue: the queue, or * as it was granted.
-- Example: select jobq.revoke_queue('jobq_producer', 'mail', 'enqueue');
create or replace function jobq.revoke_queue(grantee text, queue text, privilege text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _grantee regrole;
begin
    select g.grantee into _grantee
    from jobq_private.queue_grant as g
    where g.grantee::oid::text = revoke_queue.grantee
    and not exists (
        select from pg_catalog.pg_roles as r
        where r.oid = g.grantee or r.rolname = revoke_queue.grantee
    )
    limit 1;
    _grantee := coalesce(_grantee, jobq_private.check_queue_grant(
        revoke_queue.grantee, revoke_queue.queue, revoke_queue.privilege
    ));
    delete from jobq_private.queue_grant as g
    where g.grantee = _grantee
    and g.queue = revoke_queue.queue
    and g.privilege = revoke_queue.privilege;
end
$$;

revoke all on function jobq.revoke_queue from public;

comment on function jobq.revoke_queue is
'Takes back what grant_queue() gave. For jobq_owner alone.';

reset role;

-- Deploy jobq:setting to pg
-- Made by sql/snapshot.py from sql/setting/: edit that.
set local role jobq_owner;

-- Purpose: an interval as a whole number of milliseconds.
-- Invariant: months count as 30 days. Raises: nothing.
create or replace function jobq_private.milliseconds(length interval)
returns bigint
language sql
immutable
strict
parallel safe
as $$
    select (pg_catalog.date_part('epoch', length) * 1000)::bigint
$$;

revoke all on function jobq_private.milliseconds from public;

comment on function jobq_private.milliseconds is
'An interval as a whole number of milliseconds.';

-- Purpose: whether a queue is paused.
-- Invariant: an undeclared queue is not. Raises: nothing.
create or replace function jobq_private.is_paused(queue text)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select from jobq_private.queue as q
        where q.queue = is_paused.queue and q.paused_at is not null
    );
end
$$;

revoke all on function jobq_private.is_paused from public;

comment on function jobq_private.is_paused is
'Says whether a queue is paused.';

-- Purpose: what is wrong with a payload under a JSON Schema, as the optional extension
-- pg_jsonschema says; null when nothing is, or the extension is not here.
-- Invariant: only a member of the extension is called, whatever else bears its name, and
-- only if that is allowed; its schema can be any, so the call is dynamic. Schemas that lead out of themselves are left
-- to deliveries. Raises: nothing of its own.
create or replace function jobq_private.json_schema_violation(schema jsonb, value jsonb)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _draft constant jsonb :=
        '{"$schema": "https://json-schema.org/draft/2020-12/schema"}'::jsonb;
    _namespace text;
    _fits boolean;
begin
    select n.nspname into _namespace
    from pg_catalog.pg_extension as x
    join pg_catalog.pg_depend as d
        on d.refclassid = 'pg_catalog.pg_extension'::regclass
        and d.refobjid = x.oid
        and d.classid = 'pg_catalog.pg_proc'::regclass
        and d.deptype = 'e'
    join pg_catalog.pg_proc as p
        on p.oid = d.objid and p.proname = 'jsonb_matches_schema'
    join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
    where x.extname = 'pg_jsonschema'
    and has_schema_privilege(n.oid, 'usage')
    and has_function_privilege(p.oid, 'execute')
    and not schema @? '$.** ? (@.type() == "object").keyvalue()
        ? (@.key == "$ref" || @.key == "$dynamicRef") ? (!(@.value starts with "#"))';

    if found then
        execute format('select %I.jsonb_matches_schema($1, $2)', _namespace)
        into _fits using (schema || _draft)::json, value;
    end if;
    return case when not _fits then 'payload does not fit the payload spec' end;
end
$$;

revoke all on function jobq_private.json_schema_violation from public;

comment on function jobq_private.json_schema_violation is
'Says whether a payload does not fit a JSON Schema, where the extension pg_jsonschema is.';

-- Purpose: what is wrong with a JSON value under a schema, or null when nothing is.
-- Invariant: understands just the JSON Schema keywords that schema_problem() admits, so
-- that nothing in a stored schema is passed over. Raises: nothing.
create or replace function jobq_private.schema_violation(
    schema jsonb, value jsonb, path text
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _types jsonb := schema -> 'type';
    _type text := jsonb_typeof(value);
    _found text;
    _size integer;
begin
    if _type = 'number' and value::numeric = trunc(value::numeric) then
        _type := 'integer';
    end if;
    if _types is not null and not (
        _types @> to_jsonb(_type) or (_type = 'integer' and _types @> '"number"')
    ) then
        return format('%s must be %s, not %s', path, _types, _type);
    end if;
    if schema ? 'enum' and not exists (
        select from jsonb_array_elements(schema -> 'enum') as e (item) where e.item = value
    ) then
        return format('%s must be one of %s', path, schema -> 'enum');
    end if;

    if _type in ('number', 'integer') then
        if value::numeric < (schema ->> 'minimum')::numeric
            or value::numeric > (schema ->> 'maximum')::numeric
        then
            return format('%s must be from %s to %s', path,
                coalesce(schema ->> 'minimum', '-∞'), coalesce(schema ->> 'maximum', '∞'));
        end if;
    elsif _type = 'string' then
        _size := length(value #>> '{}');
        if _size < (schema ->> 'minLength')::integer
            or _size > (schema ->> 'maxLength')::integer
        then
            return format('%s must have %s to %s characters', path,
                coalesce(schema ->> 'minLength', '0'), coalesce(schema ->> 'maxLength', '∞'));
        end if;
        if schema ? 'pattern'
            and not jobq_private.matches_pattern(value #>> '{}', schema ->> 'pattern')
        then
            return format('%s must match %s', path, schema ->> 'pattern');
        end if;
    elsif _type = 'array' and schema ? 'items' then
        select f.violation into _found
        from jsonb_array_elements(value) with ordinality as e (item, n)
        cross join lateral (
            select jobq_private.schema_violation(
                schema_violation.schema -> 'items', e.item, format('%s[%s]', path, e.n - 1)
            )
            offset 0
        ) as f (violation)
        where f.violation is not null
        limit 1;
        return _found;
    elsif _type = 'object' then
        return jobq_private.object_violation(schema, value, path);
    end if;
    return null;
end
$$;

revoke all on function jobq_private.schema_violation from public;

comment on function jobq_private.schema_violation is
'Says what is wrong with a JSON value under a schema, or null.';

-- Purpose: the class of each sort of advisory lock, the first key of pg_advisory_lock().
-- Invariant: all that jobq takes are here, so that no two mean the same. waiting and
-- producing are W and P of docs/wake-ups.md, ending is E, emitting that of events;
-- closing is that of lanes (call_lane()), limiting that of a queue's limits,
-- gating that of gates that are made, laning that of lanes that are made, batching that of a batch (enter_batches()), joining that of graphs (join_alone());
-- maintaining is held by who calls maintain(). No SET clause, so that it is inlined and
-- costs nothing.
-- Raises: nothing.
create or replace function jobq_private.lock_class(name text)
returns integer
language sql
immutable
parallel safe
security invoker
as $$
    select case name
        when 'waiting' then 1785684593
        when 'producing' then 1785684594
        when 'maintaining' then 1785684595
        when 'ending' then 1785684596
        when 'emitting' then 1785684597
        when 'closing' then 1785684598
        when 'limiting' then 1785684599
        when 'gating' then 1785684600
        when 'laning' then 1785684601
        when 'batching' then 1785684610
        when 'joining' then 1785684611
    end
$$;

revoke all on function jobq_private.lock_class from public;

comment on function jobq_private.lock_class is
'The first key of each sort of advisory lock.';

-- Purpose: what holds for a new job of a kind in a queue: the kind's word, else the queue's,
-- else the global default. A call's own argument goes before all three, at the call.
-- Invariant: one row; with retry_policy_for(), the one place of resolution; undeclared
-- kinds and queues get the defaults. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.settings_for(kind text, queue text)
returns setof jobq_private.settings
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select
        coalesce(settings_for.queue, k.queue, 'default'),
        coalesce(k.priority, q.priority, g.priority),
        coalesce(k.max_attempts, q.max_attempts, g.max_attempts),
        coalesce(k.timeout, q.timeout, g.timeout),
        coalesce(k.lease, q.lease, g.lease),
        coalesce(k.dedup, g.dedup),
        coalesce(k.reuse_key_after_failure, g.reuse_key_after_failure),
        k.payload_schema,
        k.json_schema,
        g.max_payload_bytes,
        g.max_payload_depth,
        q.max_depth,
        k.delivery_version,
        k.concurrency_key,
        pg_catalog.num_nonnulls(k.max_running, k.rate_limit) > 0,
        coalesce(k.dedup_period, interval '10 s'),
        k.dedup_max_wait,
        k.keep
    from jobq_private.setting as g
    left join jobq_private.kind as k on k.kind = settings_for.kind
    left join jobq_private.queue as q
        on q.queue = coalesce(settings_for.queue, k.queue, 'default')
$$;

revoke all on function jobq_private.settings_for from public;

comment on function jobq_private.settings_for is
'Resolves the settings of a new job: kind, else queue, else global default.';

-- Purpose: refuse to have a kind run what is not there or has another signature, and what
-- whoever declares it may not execute.
-- Invariant: reads only. Raises: 42501, JQ007.
create or replace function jobq_private.check_sql_function(run text)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _may_execute boolean;
begin
    if run !~ '^[^".[:space:]]+\.[^".[:space:]]+$' then
        perform jobq_private.raise_error('FUNCTION_NOT_FOUND', format(
            'run must be a schema and a function without quotes: %s', run
        ));
    end if;
    select f.may_execute into _may_execute from jobq_private.sql_function(run) as f;
    if not found then
        perform jobq_private.raise_error('FUNCTION_NOT_FOUND', format(
            '%s(jsonb) returns jsonb, or the same with jsonb[]; found: %s', run, coalesce((
                select string_agg(format(
                    '(%s) returns %s', pg_get_function_arguments(p.oid),
                    pg_get_function_result(p.oid)
                ), ', ')
                from pg_catalog.pg_proc as p
                join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
                where array[n.nspname, p.proname]::text[] = parse_ident(run)
            ), 'none')
        ));
    elsif not _may_execute then
        perform jobq_private.raise_error('FUNCTION_DENIED', run);
    end if;
end
$$;

revoke all on function jobq_private.check_sql_function from public;

comment on function jobq_private.check_sql_function is
'Refuses a function that a kind cannot run.';

-- Purpose: the limits that hold for jobs of a kind in a queue, for people to read.
-- Invariant: reads only; null for each that there is not. Raises: nothing.
create or replace function jobq_private.limits_for(kind text, queue text)
returns jsonb
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'max_running', q.max_running, 'rate_limit', q.rate_limit,
        'rate_period', q.rate_period, 'rate_burst', q.rate_burst,
        'key_max_running', q.key_max_running, 'key_rate_limit', q.key_rate_limit,
        'key_rate_period', q.key_rate_period, 'key_rate_burst', q.key_rate_burst,
        'ordered', q.ordered, 'on_dead', q.on_dead,
        'kind_max_running', k.max_running, 'kind_rate_limit', k.rate_limit,
        'kind_rate_period', k.rate_period, 'kind_rate_burst', k.rate_burst
    )
    from (values (1)) as v
    left join jobq_private.queue as q on q.queue = limits_for.queue
    left join jobq_private.kind as k on k.kind = limits_for.kind
$$;

revoke all on function jobq_private.limits_for from public;

comment on function jobq_private.limits_for is
'The limits that hold for jobs of a kind in a queue.';

-- Purpose: whether a text has a match of a schema's pattern.
-- Invariant: as RE2 does where clients and deliveries check the same schema: classes such as
-- \w are of ASCII, and a dot is no line break. Raises: nothing.
create or replace function jobq_private.matches_pattern(value text, pattern text)
returns boolean
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select matches_pattern.value collate "C" ~ case
        when matches_pattern.pattern !~ '\.' then matches_pattern.pattern
        else (
            select string_agg(case m[1] when '.' then '[^\n]' else m[1] end, '' order by n)
            from regexp_matches(
                matches_pattern.pattern, '\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^]\\])*\]|.', 'g'
            ) with ordinality as t (m, n)
        )
    end
$$;

revoke all on function jobq_private.matches_pattern from public;

comment on function jobq_private.matches_pattern is
'Says whether a text has a match of a schema''s pattern.';

-- Purpose: what is wrong with the members of a JSON object under a schema, or null.
-- Invariant: the half of schema_violation() that descends into objects. Raises: nothing.
create or replace function jobq_private.object_violation(
    schema jsonb, value jsonb, path text
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _key text;
    _found text;
begin
    for _key in
        select r.key from jsonb_array_elements_text(schema -> 'required') as r (key)
    loop
        if not value ? _key then
            return format('%s.%s is missing', path, _key);
        end if;
    end loop;
    for _key in
        select k.key from jsonb_object_keys(value) as k (key)
    loop
        if schema -> 'properties' ? _key then
            _found := jobq_private.schema_violation(
                schema -> 'properties' -> _key, value -> _key, format('%s.%s', path, _key)
            );
            if _found is not null then
                return _found;
            end if;
        elsif schema -> 'additionalProperties' = 'false' then
            return format('%s.%s is not known', path, _key);
        end if;
    end loop;
    return null;
end
$$;

revoke all on function jobq_private.object_violation from public;

comment on function jobq_private.object_violation is
'Says what is wrong with the members of a JSON object under a schema, or null.';

-- Purpose: why a pattern cannot be used, or null when it can: it must be one that is matched
-- in a time linear in the text.
-- Invariant: what PostgreSQL matches by backtracking (back references) or anew from each place
-- (lookarounds) is refused, as RE2 does, and repeats that multiply, since the time for each
-- character grows with what they unfold to; comments and flavours could hide either.
-- What is left runs on an automaton. Raises: nothing.
create or replace function jobq_private.pattern_problem(pattern text)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Without escaped characters but digits, and without what stands in brackets.
    _bare constant text := regexp_replace(
        regexp_replace(pattern_problem.pattern, '\\[^0-9]', 'x', 'g'),
        '\[\^?\]?[^]]*\]', 'x', 'g'
    );
    _unfolded numeric;
begin
    if length(pattern_problem.pattern) > 1000 then
        return 'longer than 1000 characters';
    elsif pattern_problem.pattern ~ '^\*\*\*|\(\?#|^\(\?[a-z]*[^imnpst:=!<)]' then
        return 'comments, literal texts and other flavours of patterns are not known';
    elsif _bare ~ '\\[1-9]' then
        return 'back references are not matched in linear time';
    elsif _bare ~ '\(\?<?[=!]' then
        return 'lookarounds are not matched in linear time';
    end if;
    select
        coalesce(exp(sum(ln(greatest(1, r.times))) filter (where r.is_group)), 1)
        * coalesce(max(r.times) filter (where not r.is_group), 1)
    into _unfolded
    from (
        select
            m[1] <> '' as is_group,
            greatest(m[2]::numeric, nullif(m[3], '')::numeric) as times
        from regexp_matches(_bare, '(\)?)\{(\d{1,9})(?:,(\d{0,9}))?\}', 'g') as m
    ) as r;
    if _unfolded > 256.5 then
        return 'its repeats multiply to more than 256';
    end if;
    perform '' ~ pattern_problem.pattern;
    return null;
exception
    when invalid_regular_expression then
        return sqlerrm;
end
$$;

revoke all on function jobq_private.pattern_problem from public;

comment on function jobq_private.pattern_problem is
'Says why a pattern cannot be used, or null: it must be matched in linear time.';

-- Purpose: turn a violated constraint of a definition into a typed error.
-- Invariant: always raises; called from an exception handler. No constraint is violated by
-- a priority that its column cannot hold. Raises: 22023.
create or replace function jobq_private.refuse_setting(relation regclass, violated text)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.raise_error('INVALID_ARGUMENT', coalesce(
        (
            select format('%s: %s', violated, pg_get_constraintdef(c.oid))
            from pg_catalog.pg_constraint as c
            where c.conrelid = relation and c.conname = violated
        ),
        'priority must be from -32768 to 32767'
    ));
end
$$;

revoke all on function jobq_private.refuse_setting from public;

comment on function jobq_private.refuse_setting is
'Raises which rule of a definition was violated.';

-- Purpose: how a failed job of a kind in a queue is tried again: a delivery as its endpoint
-- said when the job was made; else the kind's word, else the queue's, else the default.
-- Invariant: one row; beside settings_for(), so that enqueues do not pay for it. No SET
-- clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.retry_policy_for(
    kind text, queue text, delivery_version integer
)
returns setof jobq_private.retry_policy
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select
        coalesce(v.retry ->> 'strategy', k.retry_strategy, p.strategy),
        coalesce(
            (v.retry ->> 'initial_delay')::interval, k.retry_initial_delay, p.initial_delay
        ),
        coalesce((v.retry ->> 'max_delay')::interval, k.retry_max_delay, p.max_delay),
        coalesce((v.retry ->> 'jitter')::double precision, k.retry_jitter, p.jitter)
    from jobq_private.setting as g
    left join jobq_private.kind as k on k.kind = retry_policy_for.kind
    left join jobq_private.queue as q
        on q.queue = coalesce(retry_policy_for.queue, k.queue, 'default')
    join jobq_private.retry_preset as p
        on p.retry_preset = coalesce(k.retry_preset, q.retry_preset, g.retry_preset)
    left join lateral (
        select d.document -> 'retry' as retry
        from jobq_private.definition_version as d
        where retry_policy_for.delivery_version is not null
        and d.type = 'delivery'
        and d.name = retry_policy_for.kind
        and d.version = retry_policy_for.delivery_version
    ) as v on true
$$;

revoke all on function jobq_private.retry_policy_for from public;

comment on function jobq_private.retry_policy_for is
'Resolves how a failed job is tried again: its delivery, else kind, else queue, else global default.';

-- Purpose: why a payload schema cannot be used, or null when it can.
-- Invariant: admits the JSON Schema keywords that schema_violation() enforces and, as
-- notes, title, description, examples and default; every other keyword is refused, so
-- that no rule is stored and then ignored. Raises: nothing.
create or replace function jobq_private.schema_problem(schema jsonb, path text)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _known constant jsonb := '{
        "type": ["string", "array"], "required": ["array"], "properties": ["object"],
        "additionalProperties": ["boolean"], "items": ["object"], "enum": ["array"],
        "minimum": ["number"], "maximum": ["number"], "minLength": ["number"],
        "maxLength": ["number"], "pattern": ["string"], "title": ["string"],
        "description": ["string"], "$schema": ["string"], "examples": ["array"],
        "default": ["string", "number", "boolean", "object", "array", "null"]
    }';
    _types constant jsonb :=
        '["object", "array", "string", "number", "integer", "boolean", "null"]';
    _key text;
    _value jsonb;
    _found text;
begin
    if jsonb_typeof(schema) <> 'object' then
        return format('%s must be an object', path);
    end if;
    for _key, _value in
        select e.key, e.value from jsonb_each(schema) as e
    loop
        if not coalesce(_known -> _key @> to_jsonb(jsonb_typeof(_value)), false) then
            return format('%s.%s: known are %s', path, _key,
                (select string_agg(k.key, ', ') from jsonb_object_keys(_known) as k (key)));
        elsif _key = 'type' and not _types @> _value then
            return format('%s.type must be among %s', path, _types);
        elsif _key in ('minLength', 'maxLength') and _value::text !~ '^[0-9]{1,9}$' then
            return format('%s.%s must be a whole number', path, _key);
        elsif _key = 'required' and _value @? '$[*] ? (@.type() != "string")' then
            return format('%s.required must hold names', path);
        elsif _key = 'pattern' then
            _found := path || '.pattern: ' || jobq_private.pattern_problem(_value #>> '{}');
        elsif _key = 'items' then
            _found := jobq_private.schema_problem(_value, format('%s.items', path));
        elsif _key = 'properties' then
            select f.problem into _found
            from jsonb_each(_value) as p
            cross join lateral (
                select jobq_private.schema_problem(p.value, format('%s.%s', path, p.key))
                offset 0
            ) as f (problem)
            where f.problem is not null
            limit 1;
        end if;
        if _found is not null then
            return _found;
        end if;
    end loop;
    return null;
end
$$;

revoke all on function jobq_private.schema_problem from public;

comment on function jobq_private.schema_problem is
'Says why a payload schema cannot be used, or null.';

-- Purpose: keep the schema of a kind's payloads where it can be enforced: by
-- schema_violation(), else as a JSON Schema for the extension pg_jsonschema, for clients
-- and for deliveries.
-- Invariant: one of the two at most; \b, \B and options mean other things to
-- PostgreSQL than to clients. Raises: nothing.
create or replace function jobq_private.set_payload_schema(kind text, schema jsonb)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _is_plain constant boolean :=
        jobq_private.schema_problem(set_payload_schema.schema, '') is null
        and not set_payload_schema.schema @? '$.**.pattern ? (@ like_regex "[\\\\][bB]|[(][?][^:]")';
begin
    update jobq_private.kind as k
    set
        payload_schema = case when _is_plain then set_payload_schema.schema end,
        json_schema = case when not _is_plain then set_payload_schema.schema end
    where k.kind = set_payload_schema.kind;
end
$$;

revoke all on function jobq_private.set_payload_schema from public;

comment on function jobq_private.set_payload_schema is
'Keeps the schema of a kind''s payloads where it can be enforced.';

-- Purpose: the function that a kind runs: who owns it, and whether whoever has logged in may
-- execute it; no row where there is none.
-- Invariant: looked up in the catalog by its schema and name, so that no search path counts;
-- it takes one jsonb and returns jsonb, or takes and returns jsonb[], which goes first where
-- there are both. Raises: nothing.
create or replace function jobq_private.sql_function(run text)
returns table (owner oid, may_execute boolean, is_batch boolean)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select
        p.proowner,
        has_function_privilege(session_user, p.oid, 'execute')
        and has_schema_privilege(session_user, n.oid, 'usage'),
        p.prorettype = 'jsonb[]'::regtype
    from pg_catalog.pg_proc as p
    join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
    where n.nspname = (parse_ident(sql_function.run))[1]
    and p.proname = (parse_ident(sql_function.run))[2]
    and (p.proargtypes, p.prorettype) in (
        ('3802'::oidvector, 'jsonb'::regtype), ('3807'::oidvector, 'jsonb[]'::regtype)
    )
    and p.prokind = 'f'
    and not p.proretset
    order by p.prorettype desc
    limit 1
$$;

revoke all on function jobq_private.sql_function from public;

comment on function jobq_private.sql_function is
'Finds the function that a kind runs, and says whether whoever has logged in may execute it.';

-- Purpose: change global defaults; null leaves a default as it is.
-- Invariant: one row. Jobs that exist keep what they were made with. Raises: 22023.
-- Argument dedup: the strategy for jobs with a dedup_key: skip, enqueue or replace.
-- Example: select jobq.configure(max_attempts => 10, retention => '90 days');
create or replace function jobq.configure(
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    lease interval default null,
    retry_preset text default null,
    dedup text default null,
    reuse_key_after_failure boolean default null,
    max_expiries integer default null,
    max_payload_bytes integer default null,
    max_payload_depth integer default null,
    retention interval default null,
    key_retention interval default null,
    redact_emails boolean default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _violated text;
begin
    update jobq_private.setting as g
    set
        priority = coalesce(configure.priority, g.priority),
        max_attempts = coalesce(configure.max_attempts, g.max_attempts),
        timeout = coalesce(configure.timeout, g.timeout),
        lease = coalesce(configure.lease, g.lease),
        retry_preset = coalesce(configure.retry_preset, g.retry_preset),
        dedup = coalesce(configure.dedup, g.dedup),
        reuse_key_after_failure = coalesce(
            configure.reuse_key_after_failure, g.reuse_key_after_failure
        ),
        max_expiries = coalesce(configure.max_expiries, g.max_expiries),
        max_payload_bytes = coalesce(configure.max_payload_bytes, g.max_payload_bytes),
        max_payload_depth = coalesce(configure.max_payload_depth, g.max_payload_depth),
        retention = coalesce(configure.retention, g.retention),
        key_retention = coalesce(configure.key_retention, g.key_retention),
        redact_emails = coalesce(configure.redact_emails, g.redact_emails);
exception
    when check_violation or foreign_key_violation or numeric_value_out_of_range then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.setting', _violated);
end
$$;

revoke all on function jobq.configure from public;
grant execute on function jobq.configure to jobq_operator;

comment on function jobq.configure is
'Changes global defaults; arguments left out keep theirs.';

-- Purpose: forget what was declared of a kind.
-- Invariant: refused while live jobs or schedules of the kind exist. Raises: 22004,
-- JQ007, JQ008.
-- Example: select jobq.delete_kind('send_email_v1');
create or replace function jobq.delete_kind(kind text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if delete_kind.kind is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'kind');
    elsif exists (
        select from jobq_private.job as j where j.kind = delete_kind.kind
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'live jobs of kind %s', delete_kind.kind
        ));
    elsif exists (
        select from jobq_private.schedule as s
        where s.kind = delete_kind.kind and s.status <> 'retired'
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'schedules of kind %s', delete_kind.kind
        ));
    end if;
    delete from jobq_private.kind as d where d.kind = delete_kind.kind;
    if not found then
        perform jobq_private.raise_error('KIND_NOT_FOUND', format(
            'kind %s', delete_kind.kind
        ));
    end if;
end
$$;

revoke all on function jobq.delete_kind from public;
grant execute on function jobq.delete_kind to jobq_operator;

comment on function jobq.delete_kind is
'Forgets what was declared of a kind; refused while live jobs or schedules of it exist.';

-- Purpose: forget what was declared of a queue.
-- Invariant: refused while live jobs or schedules of the queue exist. Raises: 22004,
-- JQ007, JQ008.
-- Example: select jobq.delete_queue('unused');
create or replace function jobq.delete_queue(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if delete_queue.queue is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue');
    elsif exists (
        select from jobq_private.job as j where j.queue = delete_queue.queue
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'live jobs of queue %s', delete_queue.queue
        ));
    elsif exists (
        select from jobq_private.schedule as s
        where s.queue = delete_queue.queue and s.status <> 'retired'
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'schedules of queue %s', delete_queue.queue
        ));
    end if;
    delete from jobq_private.queue as d where d.queue = delete_queue.queue;
    if not found then
        perform jobq_private.raise_error('QUEUE_NOT_FOUND', format(
            'queue %s', delete_queue.queue
        ));
    end if;
end
$$;

revoke all on function jobq.delete_queue from public;
grant execute on function jobq.delete_queue to jobq_operator;

comment on function jobq.delete_queue is
'Forgets what was declared of a queue; refused while live jobs or schedules of it exist.';

-- Purpose: the kinds that are declared, and what each says; null where the queue or the
-- default speaks.
-- Invariant: reads only. Raises: nothing.
-- Column queue: the queue of its jobs where the call names none.
-- Column dedup: the strategy for jobs with a dedup_key: skip, enqueue or replace.
-- Column concurrency_key: the path in the payload at which each job's concurrency key stands.
-- Column keep_succeeded: how long its jobs are kept that succeeded; 0 leaves no trace.
-- Column keep_dead: the same for dead jobs.
-- Column keep_cancelled: the same for cancelled jobs.
-- Column run: the function that work() calls for a job; null where workers have a handler.
-- Column retry_on: after which errors of run a job is tried again, by SQLSTATE or class.
-- Column is_endpoint: whether its jobs are delivered to an endpoint.
-- Column payload_schema: the JSON Schema that payloads must fit.
-- Column version: of the program that declared it; null where that says none.
-- Column updated_at: when it was declared.
-- Returns: a row for each kind, by name.
-- Example: select kind, queue, timeout from jobq.list_kinds();
create or replace function jobq.list_kinds()
returns table (
    kind text,
    queue text,
    priority integer,
    max_attempts integer,
    timeout interval,
    lease interval,
    retry_preset text,
    dedup text,
    concurrency_key text[],
    keep_succeeded interval,
    keep_dead interval,
    keep_cancelled interval,
    run text,
    retry_on text[],
    is_endpoint boolean,
    payload_schema jsonb,
    version bigint,
    updated_at timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        k.kind, k.queue, k.priority::integer, k.max_attempts, k.timeout, k.lease, k.retry_preset,
        k.dedup, k.concurrency_key, k.keep[1], k.keep[2], k.keep[3], k.run,
        k.retry_on,
        exists (select from jobq_private.endpoint as e where e.endpoint = k.kind),
        coalesce(k.json_schema, k.payload_schema), k.version, k.updated_at
    from jobq_private.kind as k
    order by k.kind
$$;

revoke all on function jobq.list_kinds from public;
grant execute on function jobq.list_kinds to jobq_operator, jobq_reader;

comment on function jobq.list_kinds is
'Lists the kinds that are declared, with what each says.';

-- Purpose: the JSON Schemas of kinds that a client should check payloads against: those
-- that the database cannot enforce by itself.
-- Invariant: kinds without one have no row. Raises: nothing.
-- Column schema: the JSON Schema; kinds without one have no row.
-- Example: select * from jobq.list_payload_schemas('{send_email}');
create or replace function jobq.list_payload_schemas(kinds text[])
returns table (kind text, schema jsonb)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select k.kind, k.json_schema
    from jobq_private.kind as k
    where k.kind = any(list_payload_schemas.kinds) and k.json_schema is not null;
end
$$;

revoke all on function jobq.list_payload_schemas from public;
grant execute on function jobq.list_payload_schemas to jobq_producer, jobq_operator;

comment on function jobq.list_payload_schemas is
'Returns the JSON Schemas of kinds that clients check payloads against, since the database cannot.';

-- Purpose: the queues that are declared, and what each says; null where the default speaks.
-- Invariant: reads only; queue_stats() tells how each stands. Raises: nothing.
-- Column pause_reason: why it is paused, as the caller said.
-- Column updated_at: when it was declared, paused or resumed.
-- Returns: a row for each queue, by name.
-- Example: select queue, max_depth from jobq.list_queues();
create or replace function jobq.list_queues()
returns table (
    queue text,
    priority integer,
    max_attempts integer,
    timeout interval,
    lease interval,
    retry_preset text,
    max_depth integer,
    key_max_running integer,
    paused_at timestamptz,
    pause_reason text,
    updated_at timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        q.queue, q.priority::integer, q.max_attempts, q.timeout, q.lease, q.retry_preset,
        q.max_depth, q.key_max_running, q.paused_at, q.pause_reason, q.updated_at
    from jobq_private.queue as q
    order by q.queue
$$;

revoke all on function jobq.list_queues from public;
grant execute on function jobq.list_queues to jobq_operator, jobq_reader;

comment on function jobq.list_queues is
'Lists the queues that are declared, with what each says.';

-- Purpose: of some kinds, those that a program has to declare: nothing is declared of them, or
-- only by an older version of it.
-- Invariant: reads by the primary key. Raises: nothing.
-- Argument version: of the program, as put_kind() has it; null counts only what nobody has declared.
-- Returns: the kinds, by name.
-- Example: select * from jobq.list_undeclared_kinds('{send_email,resize}', 12);
create or replace function jobq.list_undeclared_kinds(
    kinds text[], version bigint default null
)
returns table (kind text)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select u.kind
    from unnest(list_undeclared_kinds.kinds) as u (kind)
    where not exists (
        select from jobq_private.kind as k
        where k.kind = u.kind
        and (list_undeclared_kinds.version is null or k.version >= list_undeclared_kinds.version)
    )
    order by u.kind
$$;

revoke all on function jobq.list_undeclared_kinds from public;
grant execute on function jobq.list_undeclared_kinds
to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.list_undeclared_kinds is
'Lists which of these kinds nobody has declared, or only an older version of the program.';

-- Purpose: stop claims from a queue; what runs goes on, and enqueueing too.
-- Invariant: declares the queue when nobody has. Raises: 22004, 22023.
-- Example: select jobq.pause_queue('mail', 'the provider is down');
create or replace function jobq.pause_queue(queue text, reason text default null)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if pause_queue.queue is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue');
    elsif length(pause_queue.queue) not between 1 and 128 or pause_queue.queue = '*' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'queue must have 1 to 128 characters, and be one queue, not *'
        );
    elsif not exists (select from jobq_private.queue as q where q.queue = pause_queue.queue)
    then
        raise notice using
            message = 'this queue was not declared; it is now, and paused',
            detail = format('queue %s', pause_queue.queue);
    end if;
    insert into jobq_private.queue as q (queue, paused_at, pause_reason)
    values (pause_queue.queue, now(), pause_queue.reason)
    on conflict on constraint queue_pkey do update
    set
        paused_at = coalesce(q.paused_at, now()), pause_reason = excluded.pause_reason,
        updated_at = now();
end
$$;

revoke all on function jobq.pause_queue from public;
grant execute on function jobq.pause_queue to jobq_operator;

comment on function jobq.pause_queue is
'Stops claims from a queue; running jobs go on.';

-- Purpose: declare a kind of job, or replace what is declared of it; null means the
-- queue's setting, else the global default.
-- Invariant: one row, last writer wins, but with a version the newest; jobs that exist keep what
-- they were made with, but for the backoff.
-- Raises: 22004, 22023, 42501, JQ006, JQ007.
-- Never: DEFINITION_EXISTS, CONFIG_NOT_FOUND, ENDPOINT_NOT_FOUND, PAYLOAD_SPEC_NOT_FOUND,
-- SECRET_NOT_FOUND.
-- Argument queue: the queue of its jobs where the call names none.
-- Argument dedup: the strategy for jobs with a dedup_key: skip, enqueue, replace, debounce or
-- throttle.
-- Argument dedup_period: how long a job waits for another call (debounce), or how long a key makes no
-- other job (throttle); null means 10 s.
-- Argument dedup_max_wait: how long other calls may put a job off in all; null means for ever.
-- Argument concurrency_key: the path in the payload at which each job's concurrency key stands,
-- such as {customer_id}; a path that names nothing means no key.
-- Argument payload_schema: a JSON Schema that payloads must fit, of the keywords type,
-- required, properties, additionalProperties, items, enum, minimum, maximum, minLength,
-- maxLength and pattern.
-- Argument run: a function, f(jsonb) returns jsonb, that work() calls for a job of this kind;
-- with its schema. One that is f(jsonb[]) returns jsonb[] is called for many jobs at a time, and
-- returns a result for each in their order. null means that workers have a handler.
-- Argument retry_on: after which errors of run a job is tried again: SQLSTATEs, or their classes
-- by two characters; null means {08,40,53,55,57}.
-- Argument keep_succeeded: how long its jobs are kept that succeeded, at most the global
-- retention, which null means. With 0 they leave no trace: neither job nor result, log and
-- failed attempts are kept.
-- Argument keep_dead: the same for dead jobs; at least 1 hour.
-- Argument keep_cancelled: the same for cancelled jobs; at least 1 hour.
-- Argument version: of the program that declares, a number that grows; nothing is changed where
-- the kind was declared by this version or a newer one. null replaces what any of them has declared, and
-- leaves the version, so that only a newer one undoes it.
-- Example: select jobq.put_kind('send_email', queue => 'mail', max_attempts => 3, timeout => '30 s');
create or replace function jobq.put_kind(
    kind text,
    queue text default null,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    lease interval default null,
    retry_preset text default null,
    retry_strategy text default null,
    retry_initial_delay interval default null,
    retry_max_delay interval default null,
    retry_jitter double precision default null,
    dedup text default null,
    reuse_key_after_failure boolean default null,
    payload_schema jsonb default null,
    run text default null,
    concurrency_key text[] default null,
    max_running integer default null,
    rate_limit integer default null,
    rate_period interval default null,
    rate_burst integer default null,
    dedup_period interval default null,
    dedup_max_wait interval default null,
    keep_succeeded interval default null,
    keep_dead interval default null,
    keep_cancelled interval default null,
    retry_on text[] default null,
    version bigint default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _keep constant interval[] := array[
        put_kind.keep_succeeded, put_kind.keep_dead, put_kind.keep_cancelled
    ];
    _problem text := jobq_private.schema_problem(put_kind.payload_schema, 'schema');
begin
    if put_kind.kind is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'kind');
    elsif _problem is not null then
        perform jobq_private.raise_error('SCHEMA_INVALID', _problem);
    end if;
    if exists (
        select from unnest(_keep) as k (keep), jobq_private.setting as g
        where k.keep > g.retention
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'jobs are kept no longer than the global retention'
        );
    end if;
    if put_kind.run is not null then
        perform jobq_private.check_sql_function(put_kind.run);
    end if;
    insert into jobq_private.kind as k (
        kind, queue, priority, max_attempts, timeout, lease, retry_preset, retry_strategy,
        retry_initial_delay, retry_max_delay, retry_jitter, dedup, reuse_key_after_failure,
        payload_schema, run, concurrency_key,
        max_running, rate_limit, rate_period, rate_burst, dedup_period, dedup_max_wait,
        keep, retry_on, version
    )
    values (
        put_kind.kind, put_kind.queue, put_kind.priority, put_kind.max_attempts,
        put_kind.timeout, put_kind.lease, put_kind.retry_preset, put_kind.retry_strategy,
        put_kind.retry_initial_delay, put_kind.retry_max_delay, put_kind.retry_jitter,
        put_kind.dedup, put_kind.reuse_key_after_failure, put_kind.payload_schema,
        put_kind.run, put_kind.concurrency_key,
        put_kind.max_running, put_kind.rate_limit, put_kind.rate_period,
        put_kind.rate_burst,
        put_kind.dedup_period, put_kind.dedup_max_wait,
        case when num_nonnulls(variadic _keep) > 0 then _keep end, put_kind.retry_on,
        put_kind.version
    )
    on conflict on constraint kind_pkey do update
    set
        queue = excluded.queue, priority = excluded.priority,
        max_attempts = excluded.max_attempts, timeout = excluded.timeout,
        lease = excluded.lease, retry_preset = excluded.retry_preset,
        retry_strategy = excluded.retry_strategy,
        retry_initial_delay = excluded.retry_initial_delay,
        retry_max_delay = excluded.retry_max_delay, retry_jitter = excluded.retry_jitter,
        dedup = excluded.dedup, reuse_key_after_failure = excluded.reuse_key_after_failure,
        payload_schema = excluded.payload_schema, run = excluded.run,
        concurrency_key = excluded.concurrency_key,
        max_running = excluded.max_running, rate_limit = excluded.rate_limit,
        rate_period = excluded.rate_period, rate_burst = excluded.rate_burst,
        dedup_period = excluded.dedup_period, dedup_max_wait = excluded.dedup_max_wait,
        keep = excluded.keep, retry_on = excluded.retry_on,
        version = coalesce(excluded.version, k.version), updated_at = now()
    where excluded.version is null or k.version is null or excluded.version > k.version;
    if found and exists (
        select from jobq_private.endpoint as e where e.endpoint = put_kind.kind
    ) then
        perform jobq_private.begin_definition('endpoint', put_kind.kind, 'put');
        perform jobq_private.pin_delivery(put_kind.kind);
    end if;
exception
    when check_violation or foreign_key_violation or numeric_value_out_of_range then
        get stacked diagnostics _problem = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.kind', _problem);
end
$$;

revoke all on function jobq.put_kind from public;
grant execute on function jobq.put_kind to jobq_operator, jobq_worker;

comment on function jobq.put_kind is
'Declares a kind of job: its queue, limits, retries, dedup, retention and the schema of its payload.';

-- Purpose: declare a queue, or replace what is declared of it; null means the default.
-- Invariant: one row, last writer wins; a pause is left as it is. Raises: 22004, 22023.
-- Argument ordered: whether the jobs of each concurrency key run one at a time, and those behind one
-- that is tried again wait for it.
-- Argument on_dead: whether the key of an ordered queue goes on when a job of its is dead: continue,
-- or hold, until it is redriven or release_key() is called.
-- Example: select jobq.put_queue('mail', max_depth => 100000);
create or replace function jobq.put_queue(
    queue text,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    lease interval default null,
    retry_preset text default null,
    max_depth integer default null,
    key_max_running integer default null,
    max_running integer default null,
    rate_limit integer default null,
    rate_period interval default null,
    rate_burst integer default null,
    key_rate_limit integer default null,
    key_rate_period interval default null,
    key_rate_burst integer default null,
    ordered boolean default null,
    on_dead text default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _violated text;
begin
    if put_queue.queue is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue');
    end if;
    insert into jobq_private.queue as q (
        queue, priority, max_attempts, timeout, lease, retry_preset, max_depth,
        max_running, rate_limit, rate_period, rate_burst, key_max_running,
        key_rate_limit, key_rate_period, key_rate_burst, ordered, on_dead
    )
    values (
        put_queue.queue, put_queue.priority, put_queue.max_attempts, put_queue.timeout,
        put_queue.lease, put_queue.retry_preset, put_queue.max_depth,
        put_queue.max_running, put_queue.rate_limit, put_queue.rate_period,
        put_queue.rate_burst, put_queue.key_max_running, put_queue.key_rate_limit,
        put_queue.key_rate_period, put_queue.key_rate_burst, put_queue.ordered,
        put_queue.on_dead
    )
    on conflict on constraint queue_pkey do update
    set
        priority = excluded.priority, max_attempts = excluded.max_attempts,
        timeout = excluded.timeout, lease = excluded.lease,
        retry_preset = excluded.retry_preset, max_depth = excluded.max_depth,
        max_running = excluded.max_running, rate_limit = excluded.rate_limit,
        rate_period = excluded.rate_period, rate_burst = excluded.rate_burst,
        key_max_running = excluded.key_max_running,
        key_rate_limit = excluded.key_rate_limit,
        key_rate_period = excluded.key_rate_period,
        key_rate_burst = excluded.key_rate_burst, ordered = excluded.ordered,
        on_dead = excluded.on_dead, updated_at = now();
exception
    when check_violation or foreign_key_violation or numeric_value_out_of_range then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.queue', _violated);
end
$$;

revoke all on function jobq.put_queue from public;
grant execute on function jobq.put_queue to jobq_operator;

comment on function jobq.put_queue is
'Declares a queue: what holds for its jobs in place of the global defaults.';

-- Purpose: allow claims from a paused queue again, and wake its workers.
-- Invariant: resuming a queue that is not paused changes nothing. Raises: 22004, JQ007.
-- Example: select jobq.resume_queue('mail');
create or replace function jobq.resume_queue(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if resume_queue.queue is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue');
    end if;
    update jobq_private.queue as q
    set paused_at = null, pause_reason = null, updated_at = now()
    where q.queue = resume_queue.queue;
    if not found then
        perform jobq_private.raise_error(
            'QUEUE_NOT_FOUND', format('queue %s', resume_queue.queue)
        );
    end if;
    perform jobq_private.wake(array[resume_queue.queue]);
end
$$;

revoke all on function jobq.resume_queue from public;
grant execute on function jobq.resume_queue to jobq_operator;

comment on function jobq.resume_queue is
'Allows claims from a paused queue again.';

-- Purpose: show what would hold for a job of this kind in this queue.
-- Invariant: the same resolution that enqueue() uses. Its plan is priced so high that
-- PostgreSQL would compile it, for a second, before 18. Raises: nothing.
-- Argument kind: the kind; null means one that nobody has declared.
-- Argument queue: the queue; null means the kind's, else default.
-- Returns: a JSON object: the limits of a kind as a whole have kind_ before their names; queue, priority, max_attempts, timeout, lease, dedup,
-- max_depth, retry_strategy, retention and what else holds; every default of configure()
-- is there.
-- Example: select jobq.settings('send_email') ->> 'max_attempts';
create or replace function jobq.settings(kind text default null, queue text default null)
returns jsonb
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
    select to_jsonb(s) - '{delivery_version,is_limited,keep}'::text[] || to_jsonb(r)
    || jobq_private.limits_for(settings.kind, s.queue) || jsonb_build_object(
        'max_expiries', g.max_expiries, 'retention', g.retention,
        'keep_succeeded', least(s.keep[1], g.retention),
        'keep_dead', least(s.keep[2], g.retention),
        'keep_cancelled', least(s.keep[3], g.retention),
        'key_retention', g.key_retention, 'redact_emails', g.redact_emails
    )
    from jobq_private.settings_for(kind, queue) as s
    cross join jobq_private.retry_policy_for(kind, queue, s.delivery_version) as r
    cross join jobq_private.setting as g
$$;

revoke all on function jobq.settings from public;
grant execute on function jobq.settings
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.settings is
'Shows what holds for a job of this kind in this queue: kind, else queue, else default.';

reset role;

-- Deploy jobq:limit to pg
-- Made by sql/snapshot.py from sql/limit/: edit that.
set local role jobq_owner;

-- Purpose: the lane of a job: its queue and concurrency key; null without a key.
-- Invariant: a hash that nobody can aim at another's, so that a lane is found without a
-- look, and an index on it is small. Strict, and no SET clause: without a key it is not even
-- called. Not inlined: a statement would set up each function within for every job.
-- Raises: nothing.
create or replace function jobq_private.lane_id(queue text, concurrency_key text)
returns uuid
language plpgsql
stable
strict
parallel safe
security invoker
as $$
begin
    return pg_catalog.encode(
        pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
            pg_catalog.length(queue) || ':'
            || queue || concurrency_key, 'UTF8'
        )), 1, 16), 'hex'
    )::pg_catalog.uuid;
end
$$;

revoke all on function jobq_private.lane_id from public;

comment on function jobq_private.lane_id is
'The lane of a queue and a concurrency key.';

-- Purpose: the lane of jobs without a key, of a kind that has limits.
-- Invariant: never that of a key, whose hash begins otherwise. Strict, and no SET clause, as
-- lane_id(). Raises: nothing.
create or replace function jobq_private.kind_lane_id(queue text, kind text)
returns uuid
language plpgsql
stable
strict
parallel safe
security invoker
as $$
begin
    return pg_catalog.encode(
        pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
            'kind ' || pg_catalog.length(queue)
            || ':' || queue
            || kind, 'UTF8'
        )), 1, 16), 'hex'
    )::pg_catalog.uuid;
end
$$;

revoke all on function jobq_private.kind_lane_id from public;

comment on function jobq_private.kind_lane_id is
'The lane of a queue''s jobs without a key, of a kind that has limits.';

-- Purpose: the lane in which a new job waits: that of its key, else that of its kind where that
-- has limits; null for all others.
-- Invariant: no SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.lane_of(
    queue text, concurrency_key text, kind text, is_limited boolean
)
returns uuid
language sql
stable
parallel safe
security invoker
as $$
    select case
        when concurrency_key is not null then jobq_private.lane_id(queue, concurrency_key)
        when is_limited then jobq_private.kind_lane_id(queue, kind)
    end
$$;

revoke all on function jobq_private.lane_of from public;

comment on function jobq_private.lane_of is
'The lane in which a new job waits.';

-- Purpose: the gates of kinds for which lanes of a queue wait, how many more jobs each lets
-- start (null for any number), and when that changes by itself.
-- Invariant: one probe for each gate, and each is counted once. Raises: nothing.
create or replace function jobq_private.awaited_gates(queue text, now timestamptz)
returns table (gate_id uuid, room integer, open_at timestamptz)
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    return query
    with recursive awaited as (
        (
            select l.gate_id
            from jobq_private.lane as l
            where l.queue = awaited_gates.queue and l.gate_id is not null
            order by l.gate_id
            limit 1
        )
        union all
        select n.gate_id
        from awaited as a
        cross join lateral (
            select l.gate_id
            from jobq_private.lane as l
            where l.queue = awaited_gates.queue and l.gate_id > a.gate_id
            order by l.gate_id
            limit 1
        ) as n
    )
    select a.gate_id, r.room, r.open_at
    from awaited as a
    left join jobq_private.gate as g on g.gate_id = a.gate_id
    cross join lateral jobq_private.gate_room(null, g.kind, awaited_gates.now) as r;
end
$$;

revoke all on function jobq_private.awaited_gates from public;

comment on function jobq_private.awaited_gates is
'The gates of kinds for which lanes of a queue wait, with how many jobs each lets start.';

-- Purpose: lanes wait for the gates of kinds: no claim looks at them until such a gate has room.
-- Invariant: the caller holds the lanes' locks. Whether a gate has room is counted anew by each
-- claim, so nobody must open it. Raises: nothing.
create or replace function jobq_private.bar_lanes(
    lanes uuid[], gates uuid[], queue text, priority integer
)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    update jobq_private.lane as l
    set state = 'full', open_at = '-infinity', gate_id = b.gate_id
    from unnest(bar_lanes.lanes, bar_lanes.gates) as b (lane_id, gate_id)
    where l.lane_id = b.lane_id
    and l.priority = bar_lanes.priority
    and l.queue = bar_lanes.queue
$$;

revoke all on function jobq_private.bar_lanes from public;

comment on function jobq_private.bar_lanes is
'Has lanes wait for the gates of kinds.';

-- Purpose: the microseconds from one start to the next that a rate asks for; null without a
-- rate.
-- Invariant: rounded up, so that no rate is exceeded; at least one. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.spacing(rate_limit integer, rate_period interval)
returns bigint
language sql
immutable
parallel safe
security invoker
as $$
    select pg_catalog.ceil(
        extract(epoch from coalesce(rate_period, interval '1 s')) * 1000000 / rate_limit
    )::bigint
$$;

revoke all on function jobq_private.spacing from public;

comment on function jobq_private.spacing is
'The microseconds from one start to the next that a rate asks for.';

-- Purpose: what holds for a lane: the key's own limits, else what the queue says for each key.
-- Invariant: one row; all null for jobs without a key. An ordered lane runs one job at a time.
-- No SET clause, so that it is inlined, and offset 0, so that it is evaluated once. Raises: nothing.
create or replace function jobq_private.lane_rule(queue text, concurrency_key text)
returns setof jobq_private.lane_rule
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select
        case
            when lane_rule.concurrency_key is null then null
            when q.ordered then 1
            else coalesce(l.max_running, q.key_max_running)
        end,
        case
            when lane_rule.concurrency_key is null then null
            when l.rate_limit is not null
            then jobq_private.spacing(l.rate_limit, l.rate_period)
            else jobq_private.spacing(q.key_rate_limit, q.key_rate_period)
        end,
        coalesce(
            case when l.rate_limit is not null then l.rate_burst else q.key_rate_burst end, 1
        ),
        coalesce(q.ordered, false) and lane_rule.concurrency_key is not null,
        coalesce(q.on_dead = 'hold', false)
    from (values (1)) as v
    left join jobq_private.queue as q on q.queue = lane_rule.queue
    left join jobq_private.key_limit as l
        on l.queue = lane_rule.queue and l.concurrency_key = lane_rule.concurrency_key
    offset 0
$$;

revoke all on function jobq_private.lane_rule from public;

comment on function jobq_private.lane_rule is
'What holds for a lane: the key''s own limits, else what its queue says for each key.';

-- Purpose: the first of the gates that a job passes, or its lane, that lets it not start now; null
-- when it may start. Reason is held, rate_limited, ordered_behind, key_busy, kind_busy or queue_busy.
-- Invariant: a look, no promise, for who does not hold the gates. Raises: nothing.
create or replace function jobq_private.barrier(
    job jobq_private.job, now timestamptz,
    out reason text, out scope text, out open_at timestamptz
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _gate record;
    _rule jobq_private.lane_rule;
begin
    for _gate in
        select j.*, g.held_until, g.hold_reason, g.passed_until, g.head_job_id
        from jobq_private.job_gates(job) as j
        left join jobq_private.gate as g on g.gate_id = j.gate_id
    loop
        scope := _gate.scope;
        if _gate.held_until > barrier.now then
            reason := 'held';
            scope := concat_ws(': ', scope, _gate.hold_reason);
            open_at := _gate.held_until;
            return;
        end if;
        open_at := jobq_private.token_at(
            _gate.passed_until, _gate.spacing, _gate.burst, barrier.now
        );
        if open_at is not null then
            reason := 'rate_limited';
            return;
        end if;
        if _gate.is_ordered and exists (
            select from jobq_private.job as h
            where h.job_id = _gate.head_job_id and h.job_id <> job.job_id
            and h.lane_id = job.lane_id
        ) then
            reason := 'ordered_behind';
            scope := format('%s: job %s', scope, _gate.head_job_id);
            return;
        end if;
    end loop;
    open_at := null;
    if (select r.room from jobq_private.gate_room(job.queue, null, barrier.now) as r) = 0 then
        reason := 'queue_busy';
        scope := 'queue ' || job.queue;
        return;
    elsif (select r.room from jobq_private.gate_room(null, job.kind, barrier.now) as r) = 0 then
        reason := 'kind_busy';
        scope := 'kind ' || job.kind;
        return;
    end if;
    select r.* into _rule
    from jobq_private.lane_rule(job.queue, job.concurrency_key) as r;
    if exists (
        select from jobq_private.free_places(job.queue, job.lane_id, _rule.max_running, 1)
            as p (places)
        where p.places = '{}'
    ) then
        reason := 'key_busy';
        scope := format('queue %s, concurrency_key %s: %s', job.queue, job.concurrency_key,
            _rule.max_running);
        return;
    end if;
    scope := null;
end
$$;

revoke all on function jobq_private.barrier from public;

comment on function jobq_private.barrier is
'What lets a job not start now, if anything does.';

-- Purpose: after jobs of these queues, lanes (null for none) and kinds have ended: have the lanes
-- opened that were full, or may have waited for one of them in an order, and wake the queues in
-- which others may start now.
-- Invariant: the protocol of call_lane(). A claim under way may be about to have lanes wait for the
-- gate of a kind, which nobody sees yet: so where one has ended, its own queue is woken in any case.
-- Raises: nothing.
create or replace function jobq_private.call_full_lanes(
    queues text[], lanes uuid[], kinds text[]
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _is_fresh constant boolean := current_setting('transaction_isolation') = 'read committed';
    _lanes uuid[];
    _of text[];
    _seen boolean[];
    _called text[];
begin
    select
        array_agg(u.lane_id), array_agg(u.queue),
        array_agg(_is_fresh and pg_try_advisory_xact_lock_shared(
            _closing, jobq_private.lane_slot(u.lane_id)
        ))
    into _lanes, _of, _seen
    from (
        select distinct g.queue, g.lane_id
        from unnest(call_full_lanes.queues, call_full_lanes.lanes) as g (queue, lane_id)
        where g.lane_id is not null
        offset 0
    ) as u;
    with called as (
        insert into jobq_private.lane_call as c (queue, lane_id)
        select u.queue, u.lane_id
        from unnest(_of, _lanes, _seen) as u (queue, lane_id, is_seen)
        where not u.is_seen
        or exists (
            select from jobq_private.lane as l
            where l.lane_id = u.lane_id
            and (
                l.state = 'full'
                or l.state = 'later' and exists (
                    select from jobq_private.gate as g
                    where g.gate_id = l.lane_id and g.head_job_id is not null
                )
            )
        )
        returning c.queue
    )
    select array_agg(distinct w.queue) into _called
    from (
        select c.queue from called as c
        union all
        select q.queue
        from jobq_private.queue as q
        where q.queue = any (call_full_lanes.queues) and q.max_running is not null
        union all
        select l.queue
        from jobq_private.gate as g
        join jobq_private.lane as l on l.gate_id = g.gate_id
        where g.kind = any (call_full_lanes.kinds) and g.queue is null
        union all
        select u.queue
        from (
            select distinct g.queue, g.kind
            from unnest(call_full_lanes.queues, call_full_lanes.kinds) as g (queue, kind)
        ) as u
        where exists (
            select from jobq_private.gate as g where g.kind = u.kind and g.queue is null
        )
    ) as w;
    if _called is not null then
        perform jobq_private.wake(_called);
    end if;
end
$$;

revoke all on function jobq_private.call_full_lanes from public;

comment on function jobq_private.call_full_lanes is
'Has lanes opened, and queues woken, that jobs have left.';

-- Purpose: after a job has come into a lane: have the lane opened, unless it is open, or
-- full, so that the end of a job opens it.
-- Invariant: who closes a lane holds its lock exclusively until the commit, and looks again
-- under it; who adds work or room holds it shared, and then looks whether the lane is closed.
-- So one of the two always sees the other, and neither waits: who cannot have the lock calls
-- in any case. A repeatable snapshot is too old to look with. Raises: nothing.
create or replace function jobq_private.call_lane(
    lane_id uuid, queue text, concurrency_key text, priority integer, run_at timestamptz
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
begin
    if current_setting('transaction_isolation') = 'read committed'
        and pg_try_advisory_xact_lock_shared(_closing, jobq_private.lane_slot(lane_id))
    then
        perform from jobq_private.lane as l
        where l.lane_id = call_lane.lane_id
        and l.priority = call_lane.priority
        and (l.state in ('open', 'full') or l.open_at <= call_lane.run_at);
        if found then
            return;
        end if;
    end if;
    insert into jobq_private.lane_call (queue, lane_id, concurrency_key, priority)
    values (
        call_lane.queue, call_lane.lane_id, call_lane.concurrency_key, call_lane.priority
    );
end
$$;

revoke all on function jobq_private.call_lane from public;

comment on function jobq_private.call_lane is
'Has a lane opened that a job has come into.';

-- Purpose: call_lane() for each lane of these new jobs.
-- Invariant: once for a lane and priority, with the time of its earliest job. Raises: nothing.
create or replace function jobq_private.call_lanes(job_ids uuid[])
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.call_lane(
        l.lane_id, l.queue, l.concurrency_key, l.priority, l.run_at
    )
    from (
        select j.lane_id, j.queue, j.concurrency_key, j.priority, min(j.run_at) as run_at
        from jobq_private.job as j
        where j.job_id = any (call_lanes.job_ids) and j.lane_id is not null
        group by j.lane_id, j.queue, j.concurrency_key, j.priority
        offset 0
    ) as l
$$;

revoke all on function jobq_private.call_lanes from public;

comment on function jobq_private.call_lanes is
'Has the lanes opened that new jobs have come into.';

-- Purpose: before these jobs move to a queue: have the lanes opened in which others wait for one of
-- them, as in an ordered lane.
-- Invariant: the protocol of call_lane(). Raises: nothing.
create or replace function jobq_private.call_left_lanes(job_ids uuid[], queue text)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.call_full_lanes(
        array_agg(j.queue), array_agg(j.lane_id), array_agg(j.kind)
    )
    from jobq_private.job as j
    where j.job_id = any (call_left_lanes.job_ids)
    and j.lane_id is not null
    and j.queue <> call_left_lanes.queue
    having count(*) > 0
$$;

revoke all on function jobq_private.call_left_lanes from public;

comment on function jobq_private.call_left_lanes is
'Has lanes opened that waiting jobs are about to leave.';

-- Purpose: these jobs have started: what the rates of their keys and kinds have let pass, and
-- which job is the last of an ordered lane.
-- Invariant: the caller holds the gates. Raises: nothing.
create or replace function jobq_private.charge_gates(job_ids uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    update jobq_private.gate as g
    set
        passed_until = jobq_private.spent(
            g.passed_until, r.spacing, r.burst, s.jobs, clock_timestamp()
        ),
        head_job_id = case when r.is_ordered then s.last end
    from (
        select
            j.lane_id, j.queue, j.concurrency_key, count(*) as jobs,
            (array_agg(j.job_id order by j.run_at desc, j.job_id desc))[1] as last
        from jobq_private.job as j
        where j.job_id = any (charge_gates.job_ids) and j.concurrency_key is not null
        group by j.lane_id, j.queue, j.concurrency_key
        offset 0
    ) as s
    cross join lateral jobq_private.lane_rule(s.queue, s.concurrency_key) as r
    where g.gate_id = s.lane_id and (r.spacing is not null or r.is_ordered);

    update jobq_private.gate as g
    set passed_until = jobq_private.spent(
        g.passed_until, jobq_private.spacing(k.rate_limit, k.rate_period),
        coalesce(k.rate_burst, 1), s.jobs, clock_timestamp()
    )
    from (
        select j.kind, count(*) as jobs
        from jobq_private.job as j
        where j.job_id = any (charge_gates.job_ids)
        group by j.kind
        offset 0
    ) as s
    join jobq_private.kind as k on k.kind = s.kind
    where g.kind = s.kind and g.queue is null;
end
$$;

revoke all on function jobq_private.charge_gates from public;

comment on function jobq_private.charge_gates is
'What the rates of keys and kinds have let pass by the start of these jobs.';

-- Purpose: the gate of a whole queue, or of a whole kind; that of a lane is its lane_id.
-- Invariant: never a lane's, since neither queues nor keys are empty. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.gate_id(queue text, kind text)
returns uuid
language sql
stable
parallel safe
security invoker
as $$
    select jobq_private.lane_id(coalesce(queue, ''), coalesce(kind, ''))
$$;

revoke all on function jobq_private.gate_id from public;

comment on function jobq_private.gate_id is
'The gate of a whole queue, or of a whole kind.';

-- Purpose: the gates that a job passes when it starts: of its lane, of its whole queue and kind where
-- these have limits, and where it has no key that of its kind in its queue.
-- Invariant: a row for each; spacing is null without a rate. Raises: nothing.
create or replace function jobq_private.job_gates(job jobq_private.job)
returns table (
    gate_id uuid, scope text, kind text, spacing bigint, burst integer, is_ordered boolean
)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.gate_id(q.queue, null), 'queue ' || q.queue, null,
        jobq_private.spacing(q.rate_limit, q.rate_period), coalesce(q.rate_burst, 1), false
    from jobq_private.queue as q
    where q.queue = job.queue and num_nonnulls(q.max_running, q.rate_limit) > 0
    union all
    select g.gate_id, 'kind ' || g.kind, g.kind,
        jobq_private.spacing(k.rate_limit, k.rate_period), coalesce(k.rate_burst, 1), false
    from jobq_private.gate as g
    left join jobq_private.kind as k on k.kind = g.kind
    where g.kind = job.kind and g.queue is null
    union all
    select job.lane_id, format('queue %s, concurrency_key %s', job.queue, job.concurrency_key),
        null, r.spacing, r.burst, r.is_ordered
    from jobq_private.lane_rule(job.queue, job.concurrency_key) as r
    where job.concurrency_key is not null
    union all
    select g.gate_id, format('kind %s in queue %s', g.kind, g.queue), g.kind, null, 1, false
    from jobq_private.gate as g
    where g.kind = job.kind and g.queue = job.queue and job.concurrency_key is null
$$;

revoke all on function jobq_private.job_gates from public;

comment on function jobq_private.job_gates is
'The gates that a job passes when it starts.';

-- Purpose: until when a rate is spent, once so many jobs have started.
-- Invariant: counted from the clock after the starts, so that none lies closer to the next
-- than its rate says. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.spent(
    passed_until timestamptz, spacing bigint, burst integer, jobs bigint, now timestamptz
)
returns timestamptz
language sql
stable
parallel safe
security invoker
as $$
    select case when spacing is null then passed_until else
        greatest(now, least(passed_until, now + burst * spacing * interval '1 us'))
        + jobs * spacing * interval '1 us'
    end
$$;

revoke all on function jobq_private.spent from public;

comment on function jobq_private.spent is
'Until when a rate is spent, once so many jobs have started.';

-- Purpose: a job has started by no claim of a batch: the gates that it has passed know of it.
-- Invariant: the caller holds them since find_place(), and has stamped the start. All are written
-- to, so that a repeatable snapshot that has not seen the start fails at them. Raises: nothing.
create or replace function jobq_private.charge_job(job jobq_private.job)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    update jobq_private.gate as g
    set
        passed_until = jobq_private.spent(
            g.passed_until, j.spacing, j.burst, 1, clock_timestamp()
        ),
        head_job_id = case when j.is_ordered then job.job_id end
    from jobq_private.job_gates(job) as j
    where g.gate_id = j.gate_id
$$;

revoke all on function jobq_private.charge_job from public;

comment on function jobq_private.charge_job is
'Has the gates that a job has passed know of its start.';

-- Purpose: so many jobs of a queue that has limits as a whole have started.
-- Invariant: the caller holds the queue's gate. It is written to even without a rate, so that a
-- repeatable snapshot that has not seen these starts fails at the gate. Raises: nothing.
create or replace function jobq_private.charge_queue(queue text, jobs integer)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    update jobq_private.gate as g
    set passed_until = jobq_private.spent(
        g.passed_until, jobq_private.spacing(q.rate_limit, q.rate_period),
        coalesce(q.rate_burst, 1), charge_queue.jobs, clock_timestamp()
    )
    from jobq_private.queue as q
    where q.queue = charge_queue.queue
    and g.gate_id = jobq_private.gate_id(q.queue, null)
    and charge_queue.jobs > 0
$$;

revoke all on function jobq_private.charge_queue from public;

comment on function jobq_private.charge_queue is
'So many jobs of a queue that has limits as a whole have started.';

-- Purpose: refuse a job whose kind takes its concurrency key from the payload, where what
-- stands there is no key.
-- Invariant: a path that names nothing, or null, means no key. Raises: JQ006.
create or replace function jobq_private.check_concurrency_key(
    job jobq_private.new_job, path text[]
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if job.concurrency_key is not null then
        return;
    elsif jsonb_typeof(job.payload #> path) in ('object', 'array') then
        perform jobq_private.raise_error('PAYLOAD_INVALID', format(
            'job %s: %s is an %s, and no concurrency key', job.ordinal,
            '/' || array_to_string(path, '/'), jsonb_typeof(job.payload #> path)
        ));
    elsif octet_length(job.payload #>> path) not between 1 and 1024 then
        perform jobq_private.raise_error('PAYLOAD_INVALID', format(
            'job %s: %s: a concurrency key has 1 to 1024 bytes', job.ordinal,
            '/' || array_to_string(path, '/')
        ));
    end if;
end
$$;

revoke all on function jobq_private.check_concurrency_key from public;

comment on function jobq_private.check_concurrency_key is
'Refuses a payload that has no concurrency key where its kind looks for it.';

-- Purpose: check_concurrency_key() for a batch of new jobs.
-- Invariant: looks at the jobs only where a kind has a path. Raises: JQ006.
create or replace function jobq_private.check_concurrency_keys(jobs jobq_private.new_job[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from jobq_private.kind as k where k.concurrency_key is not null) then
        perform jobq_private.check_concurrency_key(j, k.concurrency_key)
        from unnest(check_concurrency_keys.jobs) as j
        join jobq_private.kind as k on k.kind = j.kind
        where k.concurrency_key is not null;
    end if;
end
$$;

revoke all on function jobq_private.check_concurrency_keys from public;

comment on function jobq_private.check_concurrency_keys is
'Refuses payloads that have no concurrency key where their kinds look for it.';

-- Purpose: whether rates or an order bind lanes of a queue.
-- Invariant: two index probes. Raises: nothing.
create or replace function jobq_private.has_rules(queue text)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return exists (
        select from jobq_private.queue as q
        where q.queue = has_rules.queue and (q.key_rate_limit is not null or q.ordered)
    )
    or exists (
        select from jobq_private.key_limit as l
        where l.queue = has_rules.queue and l.rate_limit is not null
    );
end
$$;

revoke all on function jobq_private.has_rules from public;

comment on function jobq_private.has_rules is
'Whether rates or an order bind lanes of a queue.';

-- Purpose: lease runnable jobs of a queue's lanes to a worker: those of a higher priority
-- than the given one, at which a claim finds jobs without a lane, and half of what it wants
-- at that priority; all where there are none (null). Only of these kinds, and none of those
-- excepted, null for any: where another goes first in a lane, that is left.
-- Invariant: bounded in lanes; SKIP LOCKED; what a lane may run is counted after its lock was
-- had, under the lock of the queue's limits that look_at() has taken. A lane in which nothing
-- was found is closed, and no other is written to. Raises: nothing.
create or replace function jobq_private.claim_lanes(
    queue text, worker text, max_jobs integer, priority integer, is_limited boolean,
    has_gates boolean, kinds text[] default null, except_kinds text[] default null
)
returns setof jobq.claimed_job
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _has_rules constant boolean := jobq_private.has_rules(queue);
    _needs_places constant boolean := coalesce(is_limited, false) or has_gates;
    _now constant timestamptz := clock_timestamp();
    _left integer := max_jobs;
    _level integer := 32768;
    _width integer;
    _lanes jobq_private.lane[];
    _jobs tid[];
    _places smallint[];
    _idle jobq_private.lane[];
    _others integer;
    _barred uuid[];
    _gates uuid[];
    _ids uuid[];
begin
    perform jobq_private.open_lanes(queue, _now, has_gates);
    loop
        select l.priority into _level
        from jobq_private.lane as l
        where l.queue = claim_lanes.queue and l.state = 'open' and l.priority < _level
        order by l.priority desc
        limit 1;
        exit when not found or _level < claim_lanes.priority;
        if _level = claim_lanes.priority then
            _left := least(_left, floor(max_jobs / 2.0 + random())::integer);
        end if;
        _width := least(_left, 100);
        for _round in 1 .. 50 loop
            exit when _left = 0;
            _lanes := jobq_private.pick_lanes(queue, _level, _width);
            exit when _lanes = '{}';
            _lanes := jobq_private.whole_lanes(_lanes, queue, _level);
            if _has_rules and _lanes <> '{}' then
                _lanes := jobq_private.hold_ruled_lanes(_lanes);
            end if;
            continue when _lanes = '{}';
            select b.jobs, b.places, b.idle into _jobs, _places, _idle
            from jobq_private.take_from_lanes(
                _lanes, clock_timestamp(), _left, _needs_places
            ) as b;
            _others := 0;
            if num_nonnulls(claim_lanes.kinds, claim_lanes.except_kinds) > 0 and _jobs <> '{}'
            then
                _others := cardinality(_jobs);
                select coalesce(array_agg(u.job order by u.n), '{}'),
                    array_agg(u.place order by u.n), _others - count(*)
                into _jobs, _places, _others
                from unnest(_jobs, _places) with ordinality as u (job, place, n)
                join jobq_private.job as j on j.ctid = u.job
                where (claim_lanes.kinds is null or j.kind = any (claim_lanes.kinds))
                and (claim_lanes.except_kinds is null or j.kind <> all (claim_lanes.except_kinds));
            end if;
            if has_gates and _jobs <> '{}' then
                select p.jobs, p.places, p.barred, p.gates
                into _jobs, _places, _barred, _gates
                from jobq_private.pass_kinds(clock_timestamp(), _jobs, _places) as p;
                if _barred <> '{}' then
                    perform jobq_private.bar_lanes(_barred, _gates, queue, _level);
                end if;
            end if;
            if has_gates or _has_rules then
                _ids := array(
                    select j.job_id from jobq_private.job as j where j.ctid = any (_jobs)
                );
            end if;
            return query
            with taken as (
                update jobq_private.job as j
                set
                    state = 'running', worker = claim_lanes.worker,
                    place = _places[array_position(_jobs, j.ctid)]
                where j.ctid = any (_jobs)
                returning
                    j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue,
                    j.max_attempts, j.timeout, j.lease_expires_at, j.run_at::timestamptz, j.created_at,
                    j.idempotency_key, j.lease, j.delivery_version
            )
            select t.* from taken as t
            where t.lease_expires_at is not null
            order by t.run_at, t.job_id;
            _left := _left - cardinality(_jobs);
            _width := least(100, case when _jobs = '{}' then _width * 2 else _left end);
            if _ids <> '{}' then
                perform jobq_private.charge_gates(_ids);
            end if;
            exit when jobq_private.close_lanes(_idle) = 0
                and _jobs = '{}' and coalesce(_barred, '{}') = '{}' and 2 * _others < _width;
        end loop;
        exit when _left = 0;
    end loop;
end
$$;

revoke all on function jobq_private.claim_lanes from public;

comment on function jobq_private.claim_lanes is
'Leases runnable jobs of a queue''s lanes to a worker, in fair turns.';

-- Purpose: close lanes in which a claim has found nothing: as full, until their next job is
-- due, or for good; returns how many were closed.
-- Invariant: the caller holds the rows' locks. The protocol of call_lane(): only under the
-- exclusive lock, and after another look under it; while somebody holds the lock who may be
-- about to add work or room, the lane is only put off. A repeatable snapshot closes none.
-- Raises: nothing.
create or replace function jobq_private.close_lanes(lanes jobq_private.lane[])
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _mine uuid[];
    _closed bigint;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        return 0;
    end if;
    if close_lanes.lanes = '{}' then
        return 0;
    end if;
    _mine := array(
        select l.lane_id
        from unnest(close_lanes.lanes) as l
        where pg_try_advisory_xact_lock(_closing, jobq_private.lane_slot(l.lane_id))
    );
    with found as materialized (
        select
            l.lane_id, l.priority, t.open_at,
            case
                when l.lane_id <> all (_mine) then 'busy'
                when w.run_at is null then 'empty'
                when t.open_at > n.now then 'later'
                when p.places = '{}' or h.priority <> l.priority then 'full'
                else 'busy'
            end as state
        from unnest(close_lanes.lanes) as l
        cross join (select clock_timestamp()) as n (now)
        cross join lateral jobq_private.lane_rule(l.queue, l.concurrency_key) as r
        cross join lateral jobq_private.free_places(l.queue, l.lane_id, r.max_running, 1)
            as p (places)
        left join jobq_private.gate as g on g.gate_id = l.lane_id
        left join jobq_private.job as h
            on r.is_ordered and h.job_id = g.head_job_id and h.lane_id = l.lane_id
            and h.state <> 'running'
        left join lateral (
            select j.run_at
            from jobq_private.job as j
            where j.queue = l.queue
            and j.lane_id = l.lane_id
            and j.priority = l.priority
            and j.state in ('queued', 'retrying')
            order by j.run_at
            limit 1
        ) as w on true
        cross join lateral (
            select greatest(
                case when h.priority = l.priority then h.run_at else w.run_at end,
                g.held_until,
                jobq_private.token_at(g.passed_until, r.spacing, r.burst, n.now)
            )
        ) as t (open_at)
    ),
    gone as (
        delete from jobq_private.lane as l
        using found as f
        where f.state = 'empty' and l.lane_id = f.lane_id and l.priority = f.priority
        returning l.lane_id
    ),
    closed as (
        update jobq_private.lane as l
        set
            state = case f.state when 'full' then 'full' else 'later' end,
            open_at = case f.state
                when 'busy' then clock_timestamp() + interval '5 ms'
                when 'full' then '-infinity'
                else f.open_at
            end
        from found as f
        where f.state <> 'empty' and l.lane_id = f.lane_id and l.priority = f.priority
        returning l.lane_id
    )
    select (select count(*) from gone as g) + (select count(*) from closed as c)
    into _closed;
    return _closed;
end
$$;

revoke all on function jobq_private.close_lanes from public;

comment on function jobq_private.close_lanes is
'Closes lanes in which a claim has found nothing.';

-- Purpose: of jobs that a claim has locked outside lanes, those whose kinds have no gate; the
-- others go into the lanes of their kinds.
-- Invariant: only what was made before its kind got a gate comes here. Raises: nothing.
create or replace function jobq_private.divert_jobs(jobs tid[])
returns tid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _gated tid[];
    _moved uuid[];
begin
    _gated := array(
        select j.ctid
        from jobq_private.job as j
        where j.ctid = any (divert_jobs.jobs)
        and exists (
            select from jobq_private.gate as g
            where g.kind = j.kind and (g.queue is null or g.queue = j.queue)
        )
    );
    if _gated = '{}' then
        return jobs;
    end if;
    with moved as (
        update jobq_private.job as j
        set lane_id = jobq_private.kind_lane_id(j.queue, j.kind)
        where j.ctid = any (_gated)
        returning j.job_id
    )
    select array_agg(m.job_id) into _moved from moved as m;
    perform jobq_private.call_lanes(_moved);
    return array(
        select u.job from unnest(divert_jobs.jobs) as u (job) where u.job <> all (_gated)
    );
end
$$;

revoke all on function jobq_private.divert_jobs from public;

comment on function jobq_private.divert_jobs is
'Has jobs whose kinds have a gate wait in lanes, and returns the others.';

-- Purpose: how many jobs a claim may start in a queue that has limits as a whole.
-- Invariant: the queue's gate is the caller's until the commit; zero while it is somebody
-- else's. Each look has a snapshot of its own. Raises: nothing.
create or replace function jobq_private.enter_queue(
    queue text, wanted integer, now timestamptz
)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if jobq_private.hold_gates(
        queue, array[jobq_private.gate_id(queue, null)]
    ) = '{}' then
        return 0;
    end if;
    return least(
        wanted, (select r.room from jobq_private.gate_room(queue, null, enter_queue.now) as r)
    );
end
$$;

revoke all on function jobq_private.enter_queue from public;

comment on function jobq_private.enter_queue is
'How many jobs a claim may start in a queue that has limits as a whole.';

-- Purpose: in words, which limit, rate, hold or order keeps a waiting job from starting.
-- Invariant: reads only; no row when none does. Raises: nothing.
create or replace function jobq_private.explain_barrier(job_id uuid)
returns table (reason text, explanation text)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select b.reason, case b.reason
        when 'held' then format('%s, held until %s', b.scope, b.open_at)
        when 'rate_limited' then format('%s: the next starts at %s', b.scope, b.open_at)
        when 'ordered_behind' then format('%s goes first', b.scope)
        when 'key_busy' then format('%s at once, and so many run: %s', b.scope, h.holders)
        else format('%s: as many run as its limit says', b.scope)
    end
    from jobq_private.job as j
    cross join lateral jobq_private.barrier(j, clock_timestamp()) as b
    cross join lateral (
        select string_agg(format('job %s on %s', t.job_id, t.worker), ', ') as holders
        from (
            select o.job_id, o.worker
            from jobq_private.job as o
            where o.queue = j.queue and o.lane_id = j.lane_id and o.place is not null
            limit 3
        ) as t
    ) as h
    where j.job_id = explain_barrier.job_id
    and j.state in ('queued', 'retrying')
    and b.reason is not null
$$;

revoke all on function jobq_private.explain_barrier from public;

comment on function jobq_private.explain_barrier is
'Says which limit, rate, hold or order keeps a waiting job from starting.';

-- Purpose: the place of a job that is to start by no claim of a batch: a claim of one job, or raw
-- SQL; null where nothing counts what runs, and where the job may not start: barrier says why.
-- Invariant: waits for the locks of all gates that the job passes, and of its lane, and then looks;
-- the caller charges them. Raises: nothing.
create or replace function jobq_private.find_place(
    job jobq_private.job, out place smallint, out barrier text
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _max_running integer;
begin
    perform pg_advisory_xact_lock_shared(_limits, hashtext(job.queue) & 255);
    if current_setting('transaction_isolation') <> 'read committed' then
        perform jobq_private.see_limits(job.queue);
    end if;
    if not jobq_private.has_counted() then
        barrier := 'limits have just changed';
        return;
    end if;
    perform jobq_private.wait_for_gates(job);
    barrier := (
        select b.scope from jobq_private.barrier(job, clock_timestamp()) as b
        where b.reason is not null
    );
    if barrier is not null then
        return;
    end if;
    _max_running := (
        select coalesce(r.max_running, case
            when num_nonnulls(q.max_running, k.max_running) > 0 then 32767
        end)
        from jobq_private.lane_rule(job.queue, job.concurrency_key) as r
        left join jobq_private.queue as q on q.queue = job.queue
        left join jobq_private.kind as k on k.kind = job.kind
    );
    if job.lane_id is null then
        place := case when _max_running is not null then 1 end;
        return;
    end if;
    place := (
        select p.places[1]
        from jobq_private.free_places(job.queue, job.lane_id, _max_running, 1) as p (places)
    );
end
$$;

revoke all on function jobq_private.find_place from public;

comment on function jobq_private.find_place is
'Finds the place of a job that is to start, or what keeps it from that.';

-- Purpose: the free places of a lane below its limit, the lowest first, as many as are wanted
-- and may be taken; null without a limit.
-- Invariant: counts what runs, from job_place_idx, with the snapshot of the statement: what
-- ended in whatever way is free. What runs above a limit that was lowered counts too. One
-- row; no SET clause, so that it is inlined, and offset 0, so that it is evaluated once.
-- Raises: nothing.
create or replace function jobq_private.free_places(
    queue text, lane_id uuid, max_running integer, wanted integer
)
returns setof smallint[]
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select case when max_running is not null then array(
        select n::smallint
        from pg_catalog.generate_series(
            1, least(max_running, pg_catalog.cardinality(t.places) + wanted)
        ) as n
        where n <> all (t.places)
        order by n
        limit greatest(0, least(wanted, max_running - pg_catalog.cardinality(t.places)))
    ) end
    from (
        select array(
            select j.place
            from jobq_private.job as j
            where j.queue = free_places.queue
            and j.lane_id = free_places.lane_id
            and j.place is not null
        ) as places
        offset 0
    ) as t
    offset 0
$$;

revoke all on function jobq_private.free_places from public;

comment on function jobq_private.free_places is
'The free places of a lane below its limit, as many as are wanted and may be taken.';

-- Purpose: how many jobs of a whole queue (kind null) or of a whole kind (queue null) may start now,
-- null for any number; and when that changes by itself.
-- Invariant: exact for who holds the gate; counts what runs, from job_place_idx. Raises: nothing.
create or replace function jobq_private.gate_room(
    queue text, kind text, now timestamptz, out room integer, out open_at timestamptz
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _gate jobq_private.gate;
    _rule record;
    _spacing bigint;
begin
    select g.* into _gate
    from jobq_private.gate as g
    where g.gate_id = jobq_private.gate_id(gate_room.queue, gate_room.kind);
    if _gate.held_until > now then
        room := 0;
        open_at := _gate.held_until;
        return;
    end if;
    select r.* into _rule
    from (
        select q.max_running, q.rate_limit, q.rate_period, coalesce(q.rate_burst, 1) as burst
        from jobq_private.queue as q
        where q.queue = gate_room.queue
        union all
        select k.max_running, k.rate_limit, k.rate_period, coalesce(k.rate_burst, 1)
        from jobq_private.kind as k
        where k.kind = gate_room.kind
    ) as r;
    _spacing := jobq_private.spacing(_rule.rate_limit, _rule.rate_period);
    room := jobq_private.tokens(_gate.passed_until, _spacing, _rule.burst, now);
    open_at := jobq_private.token_at(_gate.passed_until, _spacing, _rule.burst, now);
    if _rule.max_running is not null then
        room := least(room, greatest(0, _rule.max_running - case
            when gate_room.queue is not null then (
                select count(*) from jobq_private.job as j
                where j.queue = gate_room.queue and j.place is not null
            )
            else (
                select count(*) from jobq_private.job as j
                where j.kind = gate_room.kind and j.place is not null
            )
        end));
    end if;
end
$$;

revoke all on function jobq_private.gate_room from public;

comment on function jobq_private.gate_room is
'How many jobs of a queue or a kind may start now, and when that changes by itself.';

-- Purpose: lock lanes that wait for gates of kinds, for each gate as many as it lets jobs pass.
-- Invariant: bounded; SKIP LOCKED. Lanes that wait for a gate that is gone are among them. Raises:
-- nothing.
create or replace function jobq_private.gated_lanes(queue text, now timestamptz)
returns jobq_private.lane[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    return array(
        select o.lane
        from jobq_private.awaited_gates(gated_lanes.queue, gated_lanes.now) as a
        cross join lateral (
            select t as lane
            from jobq_private.lane as t
            where t.queue = gated_lanes.queue and t.gate_id = a.gate_id
            order by t.lane_id, t.priority
            limit least(coalesce(a.room, 100), 100)
            for update skip locked
        ) as o
    );
end
$$;

revoke all on function jobq_private.gated_lanes from public;

comment on function jobq_private.gated_lanes is
'Locks lanes that wait for gates of kinds, as many as these let pass.';

-- Purpose: whether all that runs has its place where limits count it: after a change of limits by a
-- repeatable snapshot, which may not have seen all that ran, the next claim of any queue gives them.
-- Invariant: one claim does, and nobody waits: false for all others meanwhile, and while another
-- transaction has one of these jobs. Raises: nothing.
create or replace function jobq_private.has_counted()
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _uncounted uuid[];
begin
    if not exists (select from jobq_private.kind_gate as k where k.gate_id is null) then
        return true;
    elsif not pg_try_advisory_xact_lock(_limits, 256) then
        return false;
    end if;
    _uncounted := array(select jobq_private.uncounted(null));
    if cardinality(_uncounted) > cardinality(array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any (_uncounted)
        for update skip locked
    )) then
        return false;
    end if;
    perform jobq_private.number_running(null);
    delete from jobq_private.kind_gate as k where k.gate_id is null;
    return true;
end
$$;

revoke all on function jobq_private.has_counted from public;

comment on function jobq_private.has_counted is
'Says whether all that runs has its place where limits count it.';

-- Purpose: hold the lane of a dead job where its order asks for that: until the job is redriven or
-- the key released.
-- Invariant: in the transaction in which it died. Raises: nothing.
create or replace function jobq_private.hold_after_dead(job jobq_private.job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from jobq_private.lane_rule(job.queue, job.concurrency_key) as r
        where r.is_ordered and r.holds_on_dead
    ) then
        perform jobq_private.store_hold(
            job.lane_id, job.queue, null, 'infinity', format('job %s is dead', job.job_id),
            job.concurrency_key
        );
    end if;
end
$$;

revoke all on function jobq_private.hold_after_dead from public;

comment on function jobq_private.hold_after_dead is
'Holds the lane of a dead job where its order asks for that.';

-- Purpose: lock these gates of a queue or its lanes, and return those that were free.
-- Invariant: SKIP LOCKED, and a gate that has no row is made under an advisory lock that is
-- only tried, so nobody waits. A repeatable snapshot that is older than somebody's passing
-- fails here. Raises: nothing.
create or replace function jobq_private.hold_gates(queue text, gates uuid[])
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _making constant integer := jobq_private.lock_class('gating');
begin
    insert into jobq_private.gate (gate_id, queue)
    select n.gate_id, hold_gates.queue
    from (
        select u.gate_id
        from unnest(hold_gates.gates) as u (gate_id)
        where not exists (select from jobq_private.gate as g where g.gate_id = u.gate_id)
        offset 0
    ) as n
    where pg_try_advisory_xact_lock(_making, jobq_private.lane_slot(n.gate_id))
    on conflict on constraint gate_pkey do nothing;
    return array(
        select g.gate_id
        from jobq_private.gate as g
        where g.gate_id = any (hold_gates.gates)
        for update skip locked
    );
end
$$;

revoke all on function jobq_private.hold_gates from public;

comment on function jobq_private.hold_gates is
'Locks gates, and returns those that were free.';

-- Purpose: of these lanes of one queue those that a claim may take from: all without a rate or an order, and
-- of the others those whose gates it could lock.
-- Invariant: as hold_gates(). Raises: nothing.
create or replace function jobq_private.hold_ruled_lanes(lanes jobq_private.lane[])
returns jobq_private.lane[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _ruled uuid[];
    _held uuid[];
begin
    _ruled := array(
        select l.lane_id
        from unnest(hold_ruled_lanes.lanes) as l
        cross join lateral jobq_private.lane_rule(l.queue, l.concurrency_key) as r
        where r.spacing is not null or r.is_ordered
    );
    _held := jobq_private.hold_gates((lanes[1]).queue, _ruled);
    return array(
        select hold_ruled_lanes.lanes[l.ordinality]
        from unnest(hold_ruled_lanes.lanes) with ordinality as l
        where l.lane_id <> all (_ruled) or l.lane_id = any (_held)
        order by l.ordinality
    );
end
$$;

revoke all on function jobq_private.hold_ruled_lanes from public;

comment on function jobq_private.hold_ruled_lanes is
'Of these lanes those that a claim may take from.';

-- Purpose: the gates of kinds are known to claims.
-- Invariant: kind_gate has a row for each gate with a kind. Raises: nothing.
create or replace function jobq_private.follow_gates()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        insert into jobq_private.kind_gate (gate_id) values (new.gate_id);
    else
        delete from jobq_private.kind_gate as k where k.gate_id = old.gate_id;
    end if;
    return null;
end
$$;

revoke all on function jobq_private.follow_gates from public;

comment on function jobq_private.follow_gates is
'Has claims know of the gates of kinds.';

create or replace trigger kind_gate_birth
after insert on jobq_private.gate
for each row when (new.kind is not null)
execute function jobq_private.follow_gates();

create or replace trigger kind_gate_end
after delete on jobq_private.gate
for each row when (old.kind is not null)
execute function jobq_private.follow_gates();

-- Purpose: a change of a kind's limits holds at once: claims see its gate, and what runs counts.
-- Invariant: fires for a change alone, also by raw SQL. Waits for claims of all queues, since jobs of
-- the kind may come into any, and then writes to its gate, so that who starts a job can hold that
-- meanwhile. Raises: nothing.
create or replace function jobq_private.follow_kind_limits()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _kind constant text := coalesce(new.kind, old.kind);
    _queue text;
begin
    perform pg_advisory_xact_lock(_limits, n.slot)
    from generate_series(0, 255) as n (slot);
    update jobq_private.limit_change as c set changed_at = clock_timestamp() where c.slot = 256;
    if num_nonnulls(new.max_running, new.rate_limit) > 0 then
        insert into jobq_private.gate as g (gate_id, kind)
        values (jobq_private.gate_id(null, _kind), _kind)
        on conflict on constraint gate_pkey do nothing;
    else
        delete from jobq_private.gate as g
        where g.kind = _kind and g.queue is null;
    end if;
    for _queue in
        select q.queue
        from (
            select j.queue from jobq_private.job as j where j.kind = _kind
            union
            select unnest(w.queues) from jobq_private.worker as w
        ) as q
        order by q.queue
    loop
        perform jobq_private.limits_changed(_queue);
    end loop;
    return null;
end
$$;

revoke all on function jobq_private.follow_kind_limits from public;

comment on function jobq_private.follow_kind_limits is
'Has claims follow a change of a kind''s limits.';

create or replace trigger kind_limits
after update on jobq_private.kind
for each row
when (
    (
        new.max_running, new.rate_limit, new.rate_period, new.rate_burst
    ) is distinct from (
        old.max_running, old.rate_limit, old.rate_period, old.rate_burst
    )
)
execute function jobq_private.follow_kind_limits();

create or replace trigger kind_birth_limits
after insert on jobq_private.kind
for each row
when (num_nonnulls(new.max_running, new.rate_limit) > 0)
execute function jobq_private.follow_kind_limits();

create or replace trigger kind_end_limits
after delete on jobq_private.kind
for each row
when (num_nonnulls(old.max_running, old.rate_limit) > 0)
execute function jobq_private.follow_kind_limits();

-- Purpose: which of 256 advisory locks guards the closing of a lane.
-- Invariant: few enough that no batch takes all of the server's. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.lane_slot(lane_id uuid)
returns integer
language sql
immutable
parallel safe
security invoker
as $$
    select pg_catalog.uuid_hash(lane_id) & 255
$$;

revoke all on function jobq_private.lane_slot from public;

comment on function jobq_private.lane_slot is
'Which of 256 advisory locks guards the closing of a lane.';

-- Purpose: after an attempt that ended without success: its place is free, and the job
-- waits in its lane again if it has attempts left.
-- The lane of a dead job may have to wait for an operator.
-- Invariant: the protocol of call_lane(). Jobs that are dead or cancelled are told of by
-- archive_jobs(). Raises: nothing.
create or replace function jobq_private.leave_lane(job jobq_private.job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if job.state = 'dead' then
        perform jobq_private.hold_after_dead(job);
    elsif job.state <> 'cancelled' then
        if job.lane_id is not null then
            perform jobq_private.call_lane(
                job.lane_id, job.queue, job.concurrency_key, job.priority, job.run_at
            );
        end if;
        perform jobq_private.call_full_lanes(
            array[job.queue], array[job.lane_id], array[job.kind]
        );
    end if;
end
$$;

revoke all on function jobq_private.leave_lane from public;

comment on function jobq_private.leave_lane is
'Has a lane opened that an attempt has left.';

-- Purpose: leave_lane() for a set of jobs whose attempts have ended, in these states, parallel to the
-- ids: places are free, and the jobs wait in their lanes again if they have attempts left.
-- Invariant: all are live still, also the dead ones, whose move into the archive tells of the others
-- of their lanes. Raises: nothing.
create or replace function jobq_private.leave_lanes(job_ids uuid[], states text[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _waiting constant uuid[] := array(
        select e.job_id
        from unnest(leave_lanes.job_ids, leave_lanes.states) as e (job_id, state)
        where e.state = 'retrying'
    );
begin
    perform jobq_private.hold_after_dead(j)
    from unnest(leave_lanes.job_ids, leave_lanes.states) as e (job_id, state)
    join jobq_private.job as j on j.job_id = any(leave_lanes.job_ids) and j.job_id = e.job_id
    where e.state = 'dead' and j.lane_id is not null;

    perform jobq_private.call_lanes(_waiting);
    perform jobq_private.call_full_lanes(
        array_agg(j.queue), array_agg(j.lane_id), array_agg(j.kind)
    )
    from jobq_private.job as j
    where j.job_id = any(_waiting)
    having count(*) > 0;
end
$$;

revoke all on function jobq_private.leave_lanes from public;

comment on function jobq_private.leave_lanes is
'Has lanes opened that many attempts have left.';

-- Purpose: after a change of what a queue, its keys or a kind of its may: give places to what runs
-- without, and open the lanes that are closed.
-- Invariant: the exclusive lock waits for the claims that looked at the old limit, and keeps
-- new ones off until the commit; so none starts unseen, and no lane stays closed. A repeatable
-- snapshot may not see all that those claims have started: has_counted(). Raises: nothing.
create or replace function jobq_private.limits_changed(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _slot constant integer := hashtext(queue) & 255;
begin
    perform pg_advisory_xact_lock(_limits, _slot);
    update jobq_private.limit_change as c
    set changed_at = clock_timestamp()
    where c.slot = _slot;
    if current_setting('transaction_isolation') = 'read committed' then
        perform jobq_private.number_running(queue);
    else
        insert into jobq_private.kind_gate (gate_id) values (null);
    end if;

    update jobq_private.lane as l
    set state = 'open', open_at = '-infinity', gate_id = null
    where l.queue = limits_changed.queue and l.state <> 'open';
    perform jobq_private.wake(array[limits_changed.queue]);
end
$$;

revoke all on function jobq_private.limits_changed from public;

comment on function jobq_private.limits_changed is
'Has a queue''s lanes follow a change of its limits.';

-- Purpose: lock the rows of these lanes, of whatever priority, and return the lanes of which no
-- other has one: what runs in a lane is counted for all its priorities.
-- Invariant: SKIP LOCKED. A lane that has no row counts as free: open_called_lanes() makes it under
-- a lock of its own. Raises: nothing.
create or replace function jobq_private.lock_lanes(lanes uuid[])
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _mine tid[];
begin
    _mine := array(
        select l.ctid
        from jobq_private.lane as l
        where l.lane_id = any (lock_lanes.lanes)
        for update skip locked
    );
    return array(
        select distinct u.lane_id
        from unnest(lock_lanes.lanes) as u (lane_id)
        where u.lane_id not in (
            select l.lane_id
            from jobq_private.lane as l
            where l.lane_id = any (lock_lanes.lanes) and l.ctid <> all (_mine)
        )
    );
end
$$;

revoke all on function jobq_private.lock_lanes from public;

comment on function jobq_private.lock_lanes is
'Of these lanes those of which no other has a row, locked.';

-- Purpose: what a claim must know of a queue before it looks for jobs.
-- Invariant: holds off a change of the queue's limits until the commit, by one of 256 locks; where such a change is
-- under way, or what runs has not been counted since, the queue looks paused for now, so that no
-- claim waits. Raises: nothing.
create or replace function jobq_private.look_at(
    queue text, now timestamptz,
    out is_paused boolean, out is_limited boolean, out has_lanes boolean, out has_gates boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
begin
    if not pg_try_advisory_xact_lock_shared(_limits, hashtext(queue) & 255) then
        is_paused := true;
        return;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        perform jobq_private.see_limits(queue);
    end if;
    select
        q.paused_at is not null, num_nonnulls(q.max_running, q.rate_limit) > 0,
        g.has_gates,
        exists (
            select from jobq_private.lane as l
            where l.queue = look_at.queue
            and l.state <> 'full'
            and l.open_at <= look_at.now
        )
        or exists (select from jobq_private.lane_call as c where c.queue = look_at.queue)
        or g.has_gates and exists (
            select from jobq_private.lane as l
            where l.queue = look_at.queue and l.gate_id is not null
        )
    into is_paused, is_limited, has_gates, has_lanes
    from (select exists (select from jobq_private.kind_gate as k) as has_gates) as g
    left join jobq_private.queue as q on q.queue = look_at.queue;
    is_paused := is_paused or has_gates and not jobq_private.has_counted();
end
$$;

revoke all on function jobq_private.look_at from public;

comment on function jobq_private.look_at is
'What a claim must know of a queue before it looks for jobs.';

-- Purpose: when the next lane of a queue may have work; a moment in the past means now.
-- Invariant: two index probes, and one more for each gate of a kind that lanes wait for. With kinds
-- that do not count, a probe for each lane at whose head one of them waits. Raises: nothing.
create or replace function jobq_private.next_lane(queue text, except_kinds text[])
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    if exists (select from jobq_private.lane_call as c where c.queue = next_lane.queue) then
        return '-infinity'::timestamptz;
    end if;
    return least(
        (
            select l.open_at
            from jobq_private.lane as l
            where l.queue = next_lane.queue and l.state <> 'full'
            and (
                next_lane.except_kinds is null
                or (
                    select j.kind
                    from jobq_private.job as j
                    where j.queue = l.queue
                    and j.lane_id = l.lane_id
                    and j.priority = l.priority
                    and j.state in ('queued', 'retrying')
                    order by j.run_at, j.job_id
                    limit 1
                ) <> all (next_lane.except_kinds)
            )
            order by l.open_at
            limit 1
        ),
        (
            select min(case
                when coalesce(a.room, 1) > 0 then '-infinity' else a.open_at
            end)
            from jobq_private.awaited_gates(next_lane.queue, clock_timestamp()) as a
        )
    );
end
$$;

revoke all on function jobq_private.next_lane from public;

comment on function jobq_private.next_lane is
'Says when the next lane of a queue may have work.';

-- Purpose: the jobs that run without a place where limits count what runs, of a queue, null for all.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.uncounted(queue text)
returns setof uuid
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select j.job_id
    from jobq_private.job as j
    cross join lateral jobq_private.lane_rule(j.queue, j.concurrency_key) as r
    left join jobq_private.queue as q on q.queue = j.queue
    left join jobq_private.kind as k on k.kind = j.kind
    where (uncounted.queue is null or j.queue = uncounted.queue)
    and j.state = 'running'
    and j.place is null
    and num_nonnulls(r.max_running, q.max_running, k.max_running) > 0
$$;

revoke all on function jobq_private.uncounted from public;

comment on function jobq_private.uncounted is
'The jobs that run without a place where limits count what runs.';

-- Purpose: give places to what runs without in a queue (null for all), where limits count what runs.
-- Invariant: the caller keeps others from starting jobs there. Raises: nothing.
create or replace function jobq_private.number_running(queue text)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    with numbered as materialized (
        select j.job_id, case when j.lane_id is null then 1 else coalesce((
            select max(o.place) from jobq_private.job as o
            where o.queue = j.queue and o.lane_id = j.lane_id and o.place is not null
        ), 0) + row_number() over (partition by j.lane_id order by j.job_id) end as place
        from jobq_private.uncounted(number_running.queue) as u (job_id)
        join jobq_private.job as j on j.job_id = u.job_id
    )
    update jobq_private.job as j
    set place = n.place
    from numbered as n
    where j.job_id = n.job_id and n.place <= 32767
$$;

revoke all on function jobq_private.number_running from public;

comment on function jobq_private.number_running is
'Gives places to what runs without in a queue, where limits count what runs.';

-- Purpose: open the lanes of a queue that were called for.
-- Invariant: bounded; SKIP LOCKED. A call is used up only while nobody closes its lane, by the
-- lock of call_lane(), and under the locks of all rows of the lane; a lane that has none is made
-- under a lock that whoever starts a job by hand holds too. Else the call stays for the next
-- claim. Raises: nothing.
create or replace function jobq_private.open_called_lanes(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _making constant integer := jobq_private.lock_class('laning');
    _calls jobq_private.lane_call[];
    _free bigint[];
    _lanes uuid[];
    _new uuid[];
    _made uuid[];
begin
    _calls := array(
        select c
        from jobq_private.lane_call as c
        where c.queue = open_called_lanes.queue
        limit 500
        for update skip locked
    );
    if _calls = '{}' then
        return;
    end if;
    _free := array(
        select c.call_id
        from unnest(_calls) as c
        where pg_try_advisory_xact_lock_shared(_closing, jobq_private.lane_slot(c.lane_id))
    );
    _lanes := jobq_private.lock_lanes(array(
        select c.lane_id from unnest(_calls) as c where c.call_id = any (_free)
    ));
    _new := array(
        select u.lane_id
        from unnest(_lanes) as u (lane_id)
        where not exists (select from jobq_private.lane as l where l.lane_id = u.lane_id)
    );
    if _new <> '{}' then
        _made := array(
            select u.lane_id
            from unnest(_new) as u (lane_id)
            where pg_try_advisory_xact_lock(_making, jobq_private.lane_slot(u.lane_id))
        );
        _lanes := array(
            select u.lane_id
            from unnest(_lanes) as u (lane_id)
            where u.lane_id not in (select unnest(_new))
            or u.lane_id in (select unnest(_made))
            and not exists (select from jobq_private.lane as l where l.lane_id = u.lane_id)
        );
    end if;
    delete from jobq_private.lane_call as d
    using unnest(_calls) as c
    where d.queue = c.queue and d.call_id = c.call_id
    and c.call_id = any (_free) and c.lane_id in (select unnest(_lanes));

    insert into jobq_private.lane as l (lane_id, priority, queue, concurrency_key)
    select distinct c.lane_id, c.priority, c.queue, c.concurrency_key
    from unnest(_calls) as c
    where c.priority is not null
    and c.call_id = any (_free) and c.lane_id in (select unnest(_lanes))
    order by c.lane_id, c.priority
    on conflict on constraint lane_pkey do update
    set state = 'open', open_at = '-infinity', gate_id = null
    where l.state <> 'open';

    update jobq_private.lane as l
    set state = 'open', open_at = '-infinity', gate_id = null
    where l.lane_id = any (_lanes)
    and (
        l.state = 'full'
        or l.state = 'later' and l.lane_id in (
            select c.lane_id from unnest(_calls) as c where c.priority is null
        )
    );
end
$$;

revoke all on function jobq_private.open_called_lanes from public;

comment on function jobq_private.open_called_lanes is
'Opens the lanes of a queue that were called for.';

-- Purpose: open the lanes of a queue that were called for, those whose time has come, and as
-- many as the gates of their kinds let pass.
-- Invariant: bounded; SKIP LOCKED, and under the locks of all rows of the lane, so that who
-- has made an open row sees who claims from another. Raises: nothing.
create or replace function jobq_private.open_lanes(
    queue text, now timestamptz, has_gates boolean
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _due jobq_private.lane[];
begin
    perform jobq_private.open_called_lanes(queue);
    _due := array(
        select t
        from jobq_private.lane as t
        where t.queue = open_lanes.queue
        and t.state <> 'full'
        and t.open_at > '-infinity'
        and t.open_at <= open_lanes.now
        order by t.open_at
        limit 200
        for update skip locked
    );
    if has_gates then
        _due := _due || jobq_private.gated_lanes(queue, open_lanes.now);
    end if;
    if _due <> '{}' then
        update jobq_private.lane as l
        set state = 'open', open_at = '-infinity', gate_id = null
        from unnest(_due) as d
        where l.lane_id = d.lane_id and l.priority = d.priority
        and l.lane_id in (
            select unnest(jobq_private.lock_lanes(array(select w.lane_id from unnest(_due) as w)))
        );
    end if;
end
$$;

revoke all on function jobq_private.open_lanes from public;

comment on function jobq_private.open_lanes is
'Opens the lanes of a queue that were called for, and those whose time has come.';

-- Purpose: of jobs that a claim has locked in lanes, those that the gates of their kinds let
-- pass; and the lanes of the others, with the gates that they are to wait for.
-- Invariant: what a kind may start is counted after its gate's lock was had. Where another holds
-- it, the lane stays open. Raises: nothing.
create or replace function jobq_private.pass_kinds(
    now timestamptz, inout jobs tid[], inout places smallint[],
    out barred uuid[], out gates uuid[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _held uuid[];
begin
    _held := array(
        select g.gate_id
        from jobq_private.gate as g
        where g.kind = any (array(
            select j.kind from jobq_private.job as j where j.ctid = any (pass_kinds.jobs)
        ))
        and g.queue is null
        for update skip locked
    );
    with candidate as materialized (
        select
            u.job, u.place, u.n, j.lane_id, g.gate_id, g.kind,
            row_number() over (partition by g.gate_id order by u.n) as nth
        from unnest(pass_kinds.jobs, pass_kinds.places)
            with ordinality as u (job, place, n)
        join jobq_private.job as j on j.ctid = u.job
        left join jobq_private.gate as g on g.kind = j.kind and g.queue is null
    ),
    room as materialized (
        select d.gate_id, case
            when d.gate_id <> all (_held) then 0
            else (select r.room from jobq_private.gate_room(null, d.kind, pass_kinds.now) as r)
        end as room
        from (
            select distinct c.gate_id, c.kind from candidate as c where c.gate_id is not null
        ) as d
    ),
    judged as materialized (
        select c.*, c.nth <= coalesce(r.room, 2147483647) as may_pass
        from candidate as c
        left join room as r on r.gate_id = c.gate_id
    ),
    closed as (
        select distinct on (j.lane_id) j.lane_id, j.gate_id
        from judged as j
        where not j.may_pass and j.gate_id = any (_held)
    )
    select
        coalesce((select array_agg(j.job order by j.n) from judged as j where j.may_pass), '{}'),
        (select array_agg(j.place order by j.n) from judged as j where j.may_pass),
        coalesce((select array_agg(c.lane_id order by c.lane_id) from closed as c), '{}'),
        coalesce((select array_agg(c.gate_id order by c.lane_id) from closed as c), '{}')
    into pass_kinds.jobs, pass_kinds.places, pass_kinds.barred, pass_kinds.gates;
end
$$;

revoke all on function jobq_private.pass_kinds from public;

comment on function jobq_private.pass_kinds is
'Of jobs in lanes those that the gates of their kinds let pass.';

-- Purpose: the next open lanes of a queue and priority in the session's turn, locked.
-- Invariant: SKIP LOCKED, so that no claim waits; goes round once. Sessions go round by
-- themselves, each from where it was; a forgotten place, as behind a pooler, only starts
-- the round anew. Raises: nothing.
create or replace function jobq_private.pick_lanes(
    queue text, priority integer, max_lanes integer
)
returns jobq_private.lane[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _name constant text := 'jobq.lane_' || (hashtext(queue) & 1023);
    _last uuid := coalesce(nullif(current_setting(_name, true), '')::uuid, gen_random_uuid());
    _picked jobq_private.lane[];
    _more jobq_private.lane[];
begin
    _picked := array(
        select l
        from jobq_private.lane as l
        where l.queue = pick_lanes.queue and l.priority = pick_lanes.priority
        and l.state = 'open' and l.lane_id > _last
        order by l.lane_id
        limit pick_lanes.max_lanes
        for update skip locked
    );
    if cardinality(_picked) < pick_lanes.max_lanes then
        _more := array(
            select l
            from jobq_private.lane as l
            where l.queue = pick_lanes.queue and l.priority = pick_lanes.priority
            and l.state = 'open' and l.lane_id <= _last
            order by l.lane_id
            limit pick_lanes.max_lanes - cardinality(_picked)
            for update skip locked
        );
        _picked := _picked || _more;
    end if;
    if _picked <> '{}' then
        perform set_config(_name, (_picked[cardinality(_picked)]).lane_id::text, false);
    end if;
    return _picked;
end
$$;

revoke all on function jobq_private.pick_lanes from public;

comment on function jobq_private.pick_lanes is
'Locks the next open lanes of a queue and priority in the session''s turn.';

-- Purpose: a change of a queue's limits holds at once for its lanes.
-- Invariant: fires for a change alone, also by raw SQL. Raises: nothing.
create or replace function jobq_private.follow_limits()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.limits_changed(coalesce(new.queue, old.queue));
    return null;
end
$$;

revoke all on function jobq_private.follow_limits from public;

comment on function jobq_private.follow_limits is
'Has a queue''s lanes follow a change of its limits.';

create or replace trigger queue_limits
after update on jobq_private.queue
for each row
when (
    (
        new.max_running, new.rate_limit, new.rate_period, new.rate_burst,
        new.key_max_running, new.key_rate_limit, new.key_rate_period,
        new.key_rate_burst, new.ordered, new.on_dead
    ) is distinct from (
        old.max_running, old.rate_limit, old.rate_period, old.rate_burst,
        old.key_max_running, old.key_rate_limit, old.key_rate_period,
        old.key_rate_burst, old.ordered, old.on_dead
    )
)
execute function jobq_private.follow_limits();

create or replace trigger queue_birth_limits
after insert on jobq_private.queue
for each row
when (num_nonnulls(
    new.max_running, new.rate_limit, new.key_max_running, new.key_rate_limit, new.ordered
) > 0)
execute function jobq_private.follow_limits();

create or replace trigger queue_end_limits
after delete on jobq_private.queue
for each row
when (num_nonnulls(
    old.max_running, old.rate_limit, old.key_max_running, old.key_rate_limit, old.ordered
) > 0)
execute function jobq_private.follow_limits();

create or replace trigger key_limits
after insert or update or delete on jobq_private.key_limit
for each row execute function jobq_private.follow_limits();

-- Purpose: when the limits of a whole queue let its next job start: at a time; at once (-infinity);
-- or when one has ended (infinity).
-- Invariant: one index probe where there is no such limit. Raises: nothing.
create or replace function jobq_private.queue_opens_at(queue text)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (
        select from jobq_private.queue as q
        where q.queue = queue_opens_at.queue
        and num_nonnulls(q.max_running, q.rate_limit) > 0
    ) then
        return '-infinity'::timestamptz;
    end if;
    return (
        select case
            when coalesce(r.room, 1) > 0 then '-infinity'
            else coalesce(r.open_at, 'infinity')
        end
        from jobq_private.gate_room(queue, null, clock_timestamp()) as r
    );
end
$$;

revoke all on function jobq_private.queue_opens_at from public;

comment on function jobq_private.queue_opens_at is
'When the limits of a whole queue let its next job start.';

-- Purpose: open lanes that are closed as full though they are not: where nobody told of the end of a
-- job, as after a raw delete, or repeatable snapshots that crossed.
-- Invariant: 200 lanes at a call, from where the session's last call ended. Raises: nothing.
create or replace function jobq_private.reopen_lanes()
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _name constant text := 'jobq.reopened';
    _from constant uuid := coalesce(
        nullif(current_setting(_name, true), '')::uuid,
        '00000000-0000-0000-0000-000000000000'
    );
    _lanes uuid[];
    _queues text[];
begin
    _lanes := array(
        select l.lane_id
        from jobq_private.lane as l
        where l.lane_id > _from
        order by l.lane_id, l.priority
        limit 200
    );
    perform set_config(_name, coalesce(_lanes[200]::text, ''), false);
    with opened as (
        update jobq_private.lane as l
        set state = 'open', open_at = '-infinity'
        where l.ctid = any (array(
            select t.ctid
            from jobq_private.lane as t
            cross join lateral jobq_private.lane_rule(t.queue, t.concurrency_key) as r
            cross join lateral jobq_private.free_places(
                t.queue, t.lane_id, r.max_running, 1
            ) as p (places)
            where t.lane_id = any (_lanes)
            and t.state = 'full'
            and t.gate_id is null
            and p.places is distinct from '{}'
            for update of t skip locked
        ))
        returning l.queue
    )
    select array_agg(distinct o.queue) into _queues from opened as o;
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
end
$$;

revoke all on function jobq_private.reopen_lanes from public;

comment on function jobq_private.reopen_lanes is
'Opens lanes that are closed as full though they are not.';

-- Purpose: have a repeatable snapshot that is older than the last change of a queue's or a kind's
-- limits fail with 40001: it would start jobs unseen.
-- Invariant: the caller holds the lock of the queue's limits, so that nobody waits. Raises:
-- nothing.
create or replace function jobq_private.see_limits(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from jobq_private.limit_change as c
    where c.slot in (hashtext(see_limits.queue) & 255, 256)
    for share;
end
$$;

revoke all on function jobq_private.see_limits from public;

comment on function jobq_private.see_limits is
'Has a snapshot that is older than the last change of limits fail.';

-- Purpose: hold the gate of a lane, or of a kind in a queue, until a time; a hold that lasts longer stays.
-- The key stands beside it for who looks.
-- Invariant: waits for claims that pass the gate; a gate that has no row is made under the lock
-- that claims try before they make one, so that none waits for this. Raises: nothing.
create or replace function jobq_private.store_hold(
    gate_id uuid, queue text, kind text, until timestamptz, reason text,
    concurrency_key text default null
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _making constant integer := jobq_private.lock_class('gating');
begin
    perform pg_advisory_xact_lock(_making, jobq_private.lane_slot(gate_id));
    insert into jobq_private.gate as g (
        gate_id, queue, kind, held_until, hold_reason, concurrency_key
    )
    values (
        store_hold.gate_id, store_hold.queue, store_hold.kind, store_hold.until,
        left(store_hold.reason, 512), store_hold.concurrency_key
    )
    on conflict on constraint gate_pkey do update
    set
        concurrency_key = excluded.concurrency_key,
        hold_reason = case
            when excluded.held_until >= g.held_until then excluded.hold_reason
            else g.hold_reason
        end,
        held_until = greatest(g.held_until, excluded.held_until);
end
$$;

revoke all on function jobq_private.store_hold from public;

comment on function jobq_private.store_hold is
'Holds the gate of a lane or a kind until a time.';

-- Purpose: of each of these lanes, its next due jobs and the places that they get; with the
-- lanes in which there was none, or that may not start one.
-- Invariant: the caller holds the lanes' locks, and the gates of those with a rate or an order.
-- One job of each lane while there are lanes for all that is wanted, else equal shares. Where an
-- ordered lane's last job waits again, no other may start. Places are told below zero, as the
-- trigger takes them from a claim. Raises: nothing.
create or replace function jobq_private.take_from_lanes(
    lanes jobq_private.lane[], now timestamptz, wanted integer, needs_places boolean
)
returns jobq_private.lane_batch
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _share constant integer := case cardinality(lanes)
        when least(wanted, 100) then 1
        else ceil(wanted::numeric / cardinality(lanes))
    end;
    _batch jobq_private.lane_batch;
begin
    with tried as materialized (
        select l.ordinality as n, p.places, array(
            select j.ctid
            from jobq_private.job as j
            where j.queue = l.queue
            and j.lane_id = l.lane_id
            and j.priority = l.priority
            and j.state in ('queued', 'retrying')
            and j.run_at <= take_from_lanes.now
            and (h.job_id is null or j.job_id = h.job_id)
            order by j.run_at, j.job_id
            limit least(
                _share,
                case when g.held_until > take_from_lanes.now then 0 end,
                jobq_private.tokens(
                    g.passed_until, r.spacing, r.burst, take_from_lanes.now
                ),
                case
                    when needs_places or r.max_running is not null
                    then coalesce(cardinality(p.places), 0)
                end
            )
            for update skip locked
        ) as jobs
        from unnest(take_from_lanes.lanes) with ordinality as l
        cross join lateral jobq_private.lane_rule(l.queue, l.concurrency_key) as r
        cross join lateral jobq_private.free_places(
            l.queue, l.lane_id,
            coalesce(r.max_running, case when needs_places then 32767 end), _share
        ) as p (places)
        left join jobq_private.gate as g on g.gate_id = l.lane_id
        left join jobq_private.job as h
            on r.is_ordered and h.job_id = g.head_job_id and h.lane_id = l.lane_id
    ),
    taken as materialized (
        select u.job, t.places[u.k] as place
        from tried as t
        cross join lateral unnest(t.jobs) with ordinality as u (job, k)
        order by u.k, t.n
        limit wanted
    )
    select
        coalesce((select array_agg(t.job) from taken as t), '{}'),
        (select array_agg(coalesce(-t.place, 0)) from taken as t),
        array(select take_from_lanes.lanes[t.n] from tried as t where t.jobs = '{}')
    into _batch;
    return _batch;
end
$$;

revoke all on function jobq_private.take_from_lanes from public;

comment on function jobq_private.take_from_lanes is
'The next due jobs of lanes, with the places that they get.';

-- Purpose: the place of a job that starts by raw SQL; null where nothing counts what runs.
-- Invariant: as find_place(); a claim has looked, and says the place. Raises: JQ011.
create or replace function jobq_private.take_place(job jobq_private.job)
returns smallint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _found record;
begin
    select f.* into _found from jobq_private.find_place(job) as f;
    if _found.barrier is not null then
        perform jobq_private.raise_error('LIMIT_REACHED', _found.barrier);
    end if;
    return _found.place;
end
$$;

revoke all on function jobq_private.take_place from public;

comment on function jobq_private.take_place is
'Gives a job that starts its place, or refuses it.';

-- Purpose: how many jobs a rate lets start now: the generic cell rate algorithm, whose state
-- is the time until which the rate is spent. Null without a rate.
-- Invariant: never more than burst. What is spent lies at most a whole burst ahead; where it
-- lies further, the clock went back, and it counts as a whole burst. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.tokens(
    passed_until timestamptz, spacing bigint, burst integer, now timestamptz
)
returns integer
language sql
stable
parallel safe
security invoker
as $$
    select case
        when spacing is null then null
        when passed_until is null or passed_until <= now then burst
        when passed_until >= now + burst * spacing * interval '1 us' then 0
        else ((
            burst * spacing - (extract(epoch from passed_until - now) * 1000000)::bigint
        ) / spacing)::integer
    end
$$;

revoke all on function jobq_private.tokens from public;

comment on function jobq_private.tokens is
'How many jobs a rate lets start now.';

-- Purpose: when a rate lets the next job start; null for at once.
-- Invariant: as tokens(). No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.token_at(
    passed_until timestamptz, spacing bigint, burst integer, now timestamptz
)
returns timestamptz
language sql
stable
parallel safe
security invoker
as $$
    select case
        when jobq_private.tokens(passed_until, spacing, burst, now) = 0
        then least(passed_until, now + burst * spacing * interval '1 us')
            - (burst - 1) * spacing * interval '1 us'
    end
$$;

revoke all on function jobq_private.token_at from public;

comment on function jobq_private.token_at is
'When a rate lets the next job start.';

-- Purpose: lock the gates that a job passes, and its lane.
-- Invariant: waits, in the order of gates; gates that are missing are made. A lane that no claim has
-- opened has no row: then the lock under which claims make it stands for one. Raises: nothing.
create or replace function jobq_private.wait_for_gates(job jobq_private.job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _making_gates constant integer := jobq_private.lock_class('gating');
    _making_lanes constant integer := jobq_private.lock_class('laning');
    _gates uuid[];
begin
    _gates := array(
        select g.gate_id from jobq_private.job_gates(job) as g
        where g.scope not like '%, concurrency_key %' or g.spacing is not null or g.is_ordered
        or exists (select from jobq_private.gate as e where e.gate_id = g.gate_id)
    );
    perform pg_advisory_xact_lock(_making_gates, n.slot)
    from (
        select distinct jobq_private.lane_slot(u.gate_id) as slot
        from unnest(_gates) as u (gate_id)
        where not exists (select from jobq_private.gate as g where g.gate_id = u.gate_id)
        order by slot
        offset 0
    ) as n;
    insert into jobq_private.gate (gate_id, queue)
    select u.gate_id, job.queue from unnest(_gates) as u (gate_id) order by u.gate_id
    on conflict on constraint gate_pkey do nothing;
    perform from jobq_private.gate as g
    where g.gate_id = any (_gates)
    order by g.gate_id
    for update;
    for _look in 1 .. 2 loop
        perform from jobq_private.lane as l
        where l.lane_id = job.lane_id
        order by l.priority
        for update;
        exit when found or job.lane_id is null;
        perform pg_advisory_xact_lock(_making_lanes, jobq_private.lane_slot(job.lane_id));
    end loop;
end
$$;

revoke all on function jobq_private.wait_for_gates from public;

comment on function jobq_private.wait_for_gates is
'Locks the gates that a job passes, and its lane.';

-- Purpose: of these lanes those of which no other claim has a row, of whatever priority: what runs in
-- a lane is counted for all priorities.
-- Invariant: as lock_lanes(). Rows of other priorities are looked for only where the queue has open
-- ones: who opens a row has all of its lane. Raises: nothing.
create or replace function jobq_private.whole_lanes(
    lanes jobq_private.lane[], queue text, priority integer
)
returns jobq_private.lane[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _whole uuid[];
begin
    if not exists (
        select from jobq_private.lane as l
        where l.queue = whole_lanes.queue and l.state = 'open'
        and l.priority < whole_lanes.priority
    ) and not exists (
        select from jobq_private.lane as l
        where l.queue = whole_lanes.queue and l.state = 'open'
        and l.priority > whole_lanes.priority
    ) then
        return lanes;
    end if;
    _whole := jobq_private.lock_lanes(
        array(select g.lane_id from unnest(whole_lanes.lanes) as g)
    );
    return array(
        select whole_lanes.lanes[g.ordinality]
        from unnest(whole_lanes.lanes) with ordinality as g
        where g.lane_id = any (_whole)
        order by g.ordinality
    );
end
$$;

revoke all on function jobq_private.whole_lanes from public;

comment on function jobq_private.whole_lanes is
'Of these lanes those of which no other claim has a row.';

-- Purpose: have one key follow again what its queue says for each.
-- Invariant: holds at once for what starts. Raises: 22004, JQ007.
-- Returns: nothing.
-- Example: select jobq.delete_limit('mail', 'customer-42');
create or replace function jobq.delete_limit(queue text, concurrency_key text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(delete_limit.queue, delete_limit.concurrency_key) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue and concurrency_key');
    end if;
    delete from jobq_private.key_limit as l
    where l.queue = delete_limit.queue
    and l.concurrency_key = delete_limit.concurrency_key;
    if not found then
        perform jobq_private.raise_error('LIMIT_NOT_FOUND', format(
            'queue %s, concurrency_key %s', delete_limit.queue, delete_limit.concurrency_key
        ));
    end if;
    perform jobq_private.record_audit(
        'delete limit', delete_limit.queue || ' ' || delete_limit.concurrency_key
    );
end
$$;

revoke all on function jobq.delete_limit from public;
grant execute on function jobq.delete_limit to jobq_operator;

comment on function jobq.delete_limit is
'Has one concurrency key follow again what its queue says for each.';

-- Purpose: start no job of one concurrency key of a queue until a time.
-- Invariant: what runs goes on; a hold that lasts longer stays. Raises: 22004, 22023.
-- Argument until: until then, or infinity until release_key() is called.
-- Argument reason: why, for explain(); 512 characters at most are kept.
-- Returns: nothing.
-- Example: select jobq.hold_key('mail', 'customer-7', now() + interval '1 min', 'asked to wait');
create or replace function jobq.hold_key(
    queue text, concurrency_key text, until timestamptz, reason text default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(hold_key.queue, hold_key.concurrency_key, hold_key.until) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue, concurrency_key and until');
    elsif octet_length(hold_key.concurrency_key) not between 1 and 1024
        or length(hold_key.queue) not between 1 and 128
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'a queue has 1 to 128 characters, a key 1 to 1024 bytes'
        );
    end if;
    perform jobq_private.store_hold(
        jobq_private.lane_id(hold_key.queue, hold_key.concurrency_key), hold_key.queue,
        null, hold_key.until, hold_key.reason, hold_key.concurrency_key
    );
    perform jobq_private.record_audit(
        'hold key', hold_key.queue || ' ' || hold_key.concurrency_key, hold_key.reason
    );
end
$$;

revoke all on function jobq.hold_key from public;
grant execute on function jobq.hold_key to jobq_operator;

comment on function jobq.hold_key is
'Starts no job of one concurrency key of a queue until a time.';

-- Purpose: the limits of single keys, and how many jobs of each run.
-- Invariant: reads only. Raises: nothing.
-- Argument queue: of this queue alone; null means of all.
-- Column updated_at: when the limit was put.
-- Returns: a row for each limit.
-- Example: select * from jobq.list_limits('mail');
create or replace function jobq.list_limits(queue text default null)
returns table (
    queue text,
    concurrency_key text,
    max_running integer,
    rate_limit integer,
    rate_period interval,
    rate_burst integer,
    running bigint,
    updated_at timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        l.queue, l.concurrency_key, l.max_running, l.rate_limit, l.rate_period,
        l.rate_burst, r.running, l.updated_at
    from jobq_private.key_limit as l
    cross join lateral (
        select count(*) as running
        from jobq_private.job as j
        where j.queue = l.queue
        and j.lane_id = jobq_private.lane_id(l.queue, l.concurrency_key)
        and j.place is not null
    ) as r
    where list_limits.queue is null or l.queue = list_limits.queue
    order by l.queue, l.concurrency_key
$$;

revoke all on function jobq.list_limits from public;
grant execute on function jobq.list_limits to jobq_operator, jobq_reader;

comment on function jobq.list_limits is
'Lists the limits of single concurrency keys, with how many jobs of each run.';

-- Purpose: say how many jobs of one key may run at once in a queue, and how many may start in each
-- period, in place of what the queue says for each key.
-- Invariant: one row, last writer wins; holds at once for what starts, and leaves what runs.
-- Raises: 22004, 22023.
-- Argument concurrency_key: the key, of 1 to 1024 bytes.
-- Argument max_running: at most so many of its jobs run at once in the queue, 1 to 32767; null
-- means what the queue says.
-- Returns: nothing.
-- Example: select jobq.put_limit('mail', 'customer-7', 3);
create or replace function jobq.put_limit(
    queue text, concurrency_key text, max_running integer default null,
    rate_limit integer default null, rate_period interval default null,
    rate_burst integer default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _violated text;
begin
    if num_nulls(put_limit.queue, put_limit.concurrency_key) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue and concurrency_key');
    end if;
    insert into jobq_private.key_limit as l (
        queue, concurrency_key, max_running, rate_limit, rate_period, rate_burst
    )
    values (
        put_limit.queue, put_limit.concurrency_key, put_limit.max_running,
        put_limit.rate_limit, put_limit.rate_period, put_limit.rate_burst
    )
    on conflict on constraint key_limit_pkey do update
    set
        max_running = excluded.max_running, rate_limit = excluded.rate_limit,
        rate_period = excluded.rate_period, rate_burst = excluded.rate_burst,
        updated_at = now();
    perform jobq_private.record_audit(
        'put limit', put_limit.queue || ' ' || put_limit.concurrency_key,
        concat_ws(', ',
            'max_running ' || put_limit.max_running,
            format('rate_limit %s in %s', put_limit.rate_limit,
                coalesce(put_limit.rate_period, '1 s'))
        )
    );
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.key_limit', _violated);
end
$$;

revoke all on function jobq.put_limit from public;
grant execute on function jobq.put_limit to jobq_operator;

comment on function jobq.put_limit is
'Says how many jobs of one concurrency key may run at once in a queue, and how many may start.';

-- Purpose: let the jobs of a held concurrency key start again.
-- Invariant: at once; what the key's limits say goes on to hold. Raises: 22004.
-- Returns: whether the key was held.
-- Example: select jobq.release_key('mail', 'customer-7');
create or replace function jobq.release_key(queue text, concurrency_key text)
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _lane_id constant uuid := jobq_private.lane_id(queue, concurrency_key);
begin
    if num_nulls(release_key.queue, release_key.concurrency_key) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue and concurrency_key');
    end if;
    perform from jobq_private.lane as l
    where l.lane_id = _lane_id
    order by l.priority
    for update;
    update jobq_private.gate as g
    set held_until = '-infinity', hold_reason = null
    where g.gate_id = _lane_id and g.held_until > clock_timestamp();
    if not found then
        return false;
    end if;
    update jobq_private.lane as l
    set state = 'open', open_at = '-infinity', gate_id = null
    where l.lane_id = _lane_id and l.state <> 'open';
    perform jobq_private.wake(array[release_key.queue]);
    perform jobq_private.record_audit(
        'release key', release_key.queue || ' ' || release_key.concurrency_key, null
    );
    return true;
end
$$;

revoke all on function jobq.release_key from public;
grant execute on function jobq.release_key to jobq_operator;

comment on function jobq.release_key is
'Lets the jobs of a held concurrency key start again, and says whether it was held.';

reset role;

-- Deploy jobq:error to pg
-- Made by sql/snapshot.py from sql/error/: edit that.
set local role jobq_owner;

-- Purpose: raise the error with this symbolic code, in the words of jobq_private.error.
-- Invariant: message and hint are static; values stand in DETAIL alone. The symbolic code
-- travels in the error's CONSTRAINT field. Raises: the SQLSTATE of the code.
create or replace function jobq_private.raise_error(code text, detail text)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _error jobq_private.error;
begin
    select e.* into strict _error
    from jobq_private.error as e
    where e.code = raise_error.code;

    raise exception using
        errcode = _error.sqlstate,
        message = _error.message,
        detail = raise_error.detail,
        hint = _error.hint,
        constraint = _error.code;
end
$$;

revoke all on function jobq_private.raise_error from public;

comment on function jobq_private.raise_error is
'Raises the error with this symbolic code, with the values in DETAIL.';

-- Purpose: a text without passwords and the like: what stands before the @ of a URL, tokens
-- after the name of a scheme, cookies, and what follows a name such as password, as a member,
-- a parameter or an option.
-- Invariant: jobq.redaction in the Python package hides the same. A text in which none of the
-- words occurs costs one look. Raises: nothing.
create or replace function jobq_private.redacted_text(given text)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _value constant text := '(?:"[^"]*"|''[^'']*''|\[[^\]]*\]|[^\s,;&)}\]]+)';
    _text text := given;
begin
    if not given ~* '://|pass|pwd|secret|token|key|credential|cookie|authorization|sig|bearer|basic|digest|negotiate|ntlm|hawk' then
        return given;
    end if;
    _text := regexp_replace(_text,
        '(?<=://)(?:[^/\s@''":]*:(?!\d+(?:[/?#]|$))[^\s''"]*|[^/\s''"]+)(?=@)', '***', 'g');
    _text := regexp_replace(_text,
        '(cookie["'']?\s*[:=]\s*)(?:"[^"]*"|''[^'']*''|[^\r\n"'']+)', '\1***', 'gi');
    _text := regexp_replace(_text,
        '(authorization["'']?\s*[:=]\s*)'
        || '(?:"[^"]*"|''[^'']*''|(?:[a-z][\w-]*\s+)?[^\s,;&)}\]]+)', '\1***', 'gi');
    _text := regexp_replace(_text,
        '\y(bearer|basic|digest|token|apikey|negotiate|ntlm|hawk)\s+[-\w.~+/=]{8,}',
        '\1 ***', 'gi');
    _text := regexp_replace(_text,
        '((?:pass(?:word|wd|phrase)?|pwd|secret|token|credential|api[-_]?key|'
        || 'access[-_]?key|private[-_]?key)[\w-]{0,64}["'']?\s*[:=]\s*)' || _value,
        '\1***', 'gi');
    _text := regexp_replace(_text, '(\y(?:key|sig|signature)=)' || _value, '\1***', 'gi');
    return regexp_replace(_text,
        '((?<![\w-])--[\w-]{0,64}(?:pass(?:word|wd|phrase)?|pwd|secret|token|key)\s+)'
        || '(?:"[^"]*"|''[^'']*''|\S+)', '\1***', 'gi');
end
$$;

revoke all on function jobq_private.redacted_text from public;

comment on function jobq_private.redacted_text is
'Returns a text without passwords, tokens and the like.';

-- Purpose: an error as it is stored: without user names and passwords of URLs, tokens, and
-- what follows a name such as password; without e-mail addresses where settings say so; cut
-- at 512 characters.
-- Invariant: looks at the first 8,192 characters. Raises: nothing.
create or replace function jobq_private.redacted(error text)
returns text
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select left(
        case when g.redact_emails
            then regexp_replace(n.text, '[\w.+-]+@[\w-]+(\.[\w-]+)+', '***', 'g')
            else n.text
        end, 512
    )
    from jobq_private.setting as g
    cross join lateral jobq_private.redacted_text(left(redacted.error, 8192)) as n (text)
$$;

revoke all on function jobq_private.redacted from public;

comment on function jobq_private.redacted is
'Returns an error as it is stored: without passwords, tokens and the like.';

-- Purpose: JSON without passwords and the like: its texts as redacted_text() has them, and no
-- texts, arrays or objects under a name such as password.
-- Invariant: numbers, true and false stay. Raises: nothing.
create or replace function jobq_private.redacted_json(value jsonb)
returns jsonb
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return case jsonb_typeof(value)
        when 'string' then to_jsonb(jobq_private.redacted_text(value #>> '{}'))
        when 'array' then (
            select coalesce(jsonb_agg(jobq_private.redacted_json(e.item) order by e.n), '[]')
            from jsonb_array_elements(value) with ordinality as e (item, n)
        )
        when 'object' then (
            select coalesce(jsonb_object_agg(m.key, case
                when jsonb_typeof(m.item) in ('string', 'array', 'object')
                    and m.key ~* '(pass(word|wd|phrase)|^pass$|pwd|secret|token|credential|api[-_]?key|access[-_]?key|private[-_]?key|authorization|cookie)'
                then '"***"'::jsonb
                else jobq_private.redacted_json(m.item)
            end), '{}')
            from jsonb_each(value) as m (key, item)
        )
        else value
    end;
end
$$;

revoke all on function jobq_private.redacted_json from public;

comment on function jobq_private.redacted_json is
'Returns JSON without passwords, tokens and the like.';

-- Purpose: the errors that jobq raises, for people and for the HTTP API.
-- Invariant: the one list; clients map by sqlstate and code, never by text.
-- Column message: the fixed text.
create or replace view jobq.error as
select e.code, e.sqlstate, e.http_status, e.message, e.hint
from jobq_private.error as e;

revoke all on jobq.error from public;
grant select on jobq.error to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on view jobq.error is
'Every error of jobq: symbolic code, SQLSTATE, HTTP status, message and hint.';

reset role;

-- Deploy jobq:shard to pg
-- Made by sql/snapshot.py from sql/shard/: edit that.
set local role jobq_owner;

-- Purpose: the number of this database in its cluster; 0 where it is none's.
-- Invariant: a constant, so that ids cost no look at a table: put_shard writes it anew, and
-- what is there stays. No SET clause, so that it is inlined. Raises: nothing.
-- creates: function jobq_private.own_shard
do $do$
begin
    if to_regprocedure('jobq_private.own_shard()') is null then
        create function jobq_private.own_shard()
        returns integer
        language sql
        immutable
        parallel safe
        security invoker
        as 'select 0';
    end if;
end
$do$;

revoke all on function jobq_private.own_shard() from public;

comment on function jobq_private.own_shard() is
'The number of this database in its cluster.';

-- Purpose: have the ids of this database carry another number.
-- Invariant: refused where jobs exist, whose ids carry the old one. What calls own_shard was
-- planned with it as a constant, and is planned anew. Raises: 22023.
create or replace function jobq_private.become_shard(shard_id integer)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from jobq_private.job)
    or exists (select from jobq_private.job_archive)
    or exists (select from jobq_private.schedule) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'this database has jobs or schedules, and keeps its number '
            || jobq_private.own_shard()
        );
    end if;
    execute format(
        'create or replace function jobq_private.own_shard() returns integer '
        'language sql immutable parallel safe security invoker as %L',
        'select ' || become_shard.shard_id
    );
end
$$;

revoke all on function jobq_private.become_shard from public;

comment on function jobq_private.become_shard is
'Has the ids of this database carry another number.';

-- Purpose: what a router must know of each public function: how it is called, what comes back,
-- and where it is answered. One that has no route is refused.
-- Column inputs: the types of what is given.
-- Column outputs: the names and types of the columns that come back, where there are several.
-- Column answer: void, set, record (the columns are parameters) or value.
create or replace view jobq_private.routed_function as
select
    p.oid as function_oid, p.proname::text as name,
    coalesce(r.class, 'refused') as class,
    coalesce(r.detail, 'it has no route') as detail,
    pg_get_function_arguments(p.oid) as arguments,
    pg_get_function_result(p.oid) as result,
    array(
        select format_type(i.type_oid, null)
        from unnest(p.proargtypes) with ordinality as i (type_oid, n)
        order by i.n
    ) as inputs,
    array(
        select quote_ident(a.name)
        from unnest(p.proargnames, p.proallargtypes, p.proargmodes)
            with ordinality as a (name, type_oid, mode, n)
        where a.mode in ('o', 't')
        order by a.n
    ) as outputs,
    array(
        select quote_ident(a.name) || ' ' || format_type(a.type_oid, null)
        from unnest(p.proargnames, p.proallargtypes, p.proargmodes)
            with ordinality as a (name, type_oid, mode, n)
        where a.mode in ('o', 't')
        order by a.n
    ) as output_columns,
    case
        when p.prorettype = 'void'::regtype then 'void'
        when p.proretset then 'set'
        when p.prorettype = 'record'::regtype then 'record'
        else 'value'
    end as answer,
    case p.provolatile when 'v' then 'volatile' when 's' then 'stable' else 'immutable' end
    as volatility
from pg_proc as p
left join jobq_private.route as r on r.function_name = p.proname
where p.pronamespace = 'jobq'::regnamespace
and p.prorettype <> 'trigger'::regtype;

revoke all on jobq_private.routed_function from public;

comment on view jobq_private.routed_function is
'What a router must know of each public function.';

-- Purpose: the functions of PL/Proxy by which a router calls one function on its shards.
-- Invariant: one line each: on the partition that the first argument names, on all, or on those
-- that the first argument names for each element, whose numbers the second holds. Raises: nothing.
create or replace function jobq_private.router_calls(called jobq_private.routed_function)
returns table (statement text)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select format(
        'create function jobq_router.%I(%s) returns %s language plproxy as '
        '$plproxy$ cluster ''jobq''; %s; $plproxy$',
        called.name, array_to_string(w.first || c.types, ', '), c.result,
        replace(w.body, '<call>', format('jobq.%I(%s)', called.name, c.given))
    )
    from (values
        ('one', '{integer}'::text[], 'run on $1; select * from <call>'),
        ('all', '{}', 'run on all; select * from <call>'),
        ('split', '{integer[],integer[]}',
         'split all; run on $1; select ($2)[row_number() over ()] as ordinal_, a.* from <call> as a')
    ) as w (way, first, body)
    cross join lateral (
        select
            array_agg(case when i.is_list then 'jsonb[]' else i.type end order by i.n) as types,
            string_agg(
                case when i.is_list then format(
                    'case when array_remove($%1$s, null) <> ''{}'' then to_jsonb($%1$s) end', i.place
                ) else '$' || i.place end, ', ' order by i.n
            ) as given,
            case
                when w.way = 'split'
                then format('table (ordinal_ integer, %s)', array_to_string(called.output_columns, ', '))
                when called.answer = 'set' then called.result
                when called.answer = 'record'
                then format('table (%s)', array_to_string(called.output_columns, ', '))
                else 'setof ' || called.result
            end as result
        from (
            select
                g.type, g.n, g.n + cardinality(w.first) as place,
                w.way = 'split' and g.type = 'jsonb' as is_list
            from unnest(called.inputs) with ordinality as g (type, n)
        ) as i
    ) as c
    where w.way = any(case called.class
        when 'own' then '{}'::text[]
        when 'refused' then '{}'
        when 'every' then '{all}'
        when 'all' then '{all}'
        when 'split' then '{one,split}'
        else '{one}'
    end)
$$;

revoke all on function jobq_private.router_calls from public;

comment on function jobq_private.router_calls is
'Writes the functions of PL/Proxy by which a router calls one function on its shards.';

-- Purpose: the shard that a job is on, by its id: the tenth byte, which stands as two digits before
-- the last dash. That of a batch or a schedule says so too.
-- Invariant: reads the id alone; a database that is in no cluster is shard 0. Raises: nothing.
-- Returns: its number, 0 to 255; null for null.
-- Example: select jobq.shard_of('0198c0de-1234-7abc-9f03-0123456789ab');
create or replace function jobq.shard_of(job_id uuid)
returns integer
language sql
immutable
strict
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select get_byte(uuid_send(shard_of.job_id), 9)
$$;

revoke all on function jobq.shard_of from public;
grant execute on function jobq.shard_of
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.shard_of is
'Returns the number of the shard that a job is on, which its id tells.';

-- Purpose: the function of a router that stands for a public function of its shards: it says
-- where, calls there, and tells errors as the shard would. Its class is its template.
-- Invariant: named, typed and defaulted as on the shard. Raises: nothing. Never: ONE_DATABASE.
create or replace function jobq_private.router_function(called jobq_private.routed_function)
returns text
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select format(
        $template$create function jobq.%I(%s) returns %s language plpgsql %s as $router$
#variable_conflict use_column
declare
    %s
    _detail text;
    _hint text;
begin
    %s
exception when others then
    get stacked diagnostics _detail = pg_exception_detail, _hint = pg_exception_hint;
    perform jobq_router.tell(sqlstate, sqlerrm, _detail, _hint, %s);
end
$router$
$template$,
        called.name, called.arguments, called.result, called.volatility,
        case
            when called.class = 'split'
            then format('_places integer[] := jobq_router.places_of_%s(%I);', called.detail, called.detail)
            when called.class = 'some' then '_partition integer; _ids uuid[]; _found integer; _count integer := 0;'
            when w.place is not null then format('_partition integer := %s;', w.place)
            else ''
        end,
        case called.class
            when 'refused' then format(
                'perform jobq_private.raise_error(''ONE_DATABASE'', %L);',
                called.name || ': ' || called.detail
            )
            when 'split' then format(
                'if %s then return query select * from jobq_router.%I(_places[1]%s); return; end if;'
                'return query select %s from jobq_router.%I(_places, jobq_router.count_to(cardinality(_places))%s)'
                ' as a order by a.ordinal_;',
                g.is_whole, called.name, g.given, g.columns, called.name, g.elements
            )
            when 'some' then format(
                'for _partition, _ids in select * from jobq_router.parts_of(job_ids) loop '
                'exit when _count >= %1$I; '
                'return query select * from jobq_router.%2$I(_partition%3$s); '
                'get diagnostics _found = row_count; _count := _count + _found; end loop;',
                called.detail, called.name, g.rest
            )
            else a.answer
        end,
        case when w.place is not null then '_partition' else 'null' end
    )
    from (
        select
            coalesce(string_agg(', $' || i.n, '' order by i.n), '') as given,
            string_agg(', ' || case
                when i.type = 'jsonb' then format('jobq_router.elements($%s, cardinality(_places))', i.n)
                else '$' || i.n
            end, '' order by i.n) as elements,
            'cardinality(_places) = 1' || string_agg(case
                when i.type = 'jsonb' or i.type like '%[]'
                then format(' or jobq_router.size($%s) <> cardinality(_places)', i.n)
                else ''
            end, '' order by i.n) as is_whole,
            string_agg(', ' || case p.name
                when 'job_ids' then '_ids'
                when called.detail then p.name || ' - _count'
                else '$' || i.n
            end, '' order by i.n) as rest,
            (
                select string_agg('a.' || replace(o.name, 'ordinal', 'ordinal_'), ', ')
                from unnest(called.outputs) as o (name)
            ) as columns
        from unnest(called.inputs) with ordinality as i (type, n)
        cross join lateral (
            select p.proargnames[i.n] from pg_proc as p where p.oid = called.function_oid
        ) as p (name)
    ) as g
    cross join lateral (values (case called.class
        when 'key' then 'jobq_router.place(kind, concurrency_key, idempotency_key, dedup_key, after, batch_id)'
        when 'lot' then format(
            'coalesce(jobq_router.partition_of(jobq.shard_of(%s)), jobq_router.lot())',
            coalesce(nullif(called.detail, ''), 'null')
        )
        when 'id' then format(
            'coalesce(jobq_router.partition_of(jobq.shard_of(%I)), jobq_router.lot())', called.detail
        )
        when 'schedule' then format('jobq_router.place_schedule(%I::text)', called.detail)
        when 'any' then 'jobq_router.anyone()'
    end)) as w (place)
    cross join lateral (values (format(
        'jobq_router.%I(%s)', called.name,
        case when w.place is null then substr(g.given, 3) else '_partition' || g.given end
    ))) as c (call)
    cross join lateral (values (case
        when called.answer = 'void' then format('perform * from %s;', c.call)
        when called.class = 'every' then format(
            'return (select %s from %s as a);',
            case called.result
                when 'boolean' then 'bool_or(a)'
                when 'bigint' then 'sum(a)::bigint'
                else '(array_agg(a))[1]'
            end, c.call
        )
        when called.class = 'all' then replace(
            case called.answer
                when 'set' then 'return query with answers as (select * from <call>) <merge>;'
                else 'return (with answers as (select * from <call>) <merge>);'
            end, '<call>', c.call
        )
        when called.answer = 'set' then format('return query select * from %s;', c.call)
        when called.answer = 'record' then format(
            'select * from %s into %s;', c.call, array_to_string(called.outputs, ', ')
        )
        else format('return (select a from %s as a);', c.call)
    end)) as n (merged)
    cross join lateral (values (replace(
        n.merged, '<merge>', coalesce(nullif(called.detail, ''), 'select * from answers')
    ))) as a (answer)
$$;

revoke all on function jobq_private.router_function from public;

comment on function jobq_private.router_function is
'Writes the function of a router that stands for a public function of its shards.';

-- Purpose: the shard for a new job, by the rule that routers and clients share.
-- Invariant: what belongs together stays together: by batch_id, else after, the shard of those;
-- else by the first key given, the shard for which md5 of number, colon and key is greatest, so
-- that a shard that is added takes keys from all others, and no other key moves. md5 is the
-- same in every version of PostgreSQL and every language. Without any, one at random.
-- Raises: 22004.
-- Argument shard_ids: the shards that get new keys, as the epoch has them.
-- Argument after: the jobs that it waits for, whose first decides.
-- Argument batch_id: the batch that it becomes a member of.
-- Returns: one of shard_ids, or the shard of the batch or the job that it waits for.
-- Example: select jobq.choose_shard('{0, 1}', concurrency_key => 'customer-7');
create or replace function jobq.choose_shard(
    shard_ids integer[],
    concurrency_key text default null,
    idempotency_key text default null,
    dedup_key text default null,
    after uuid[] default null,
    batch_id uuid default null
)
returns integer
language plpgsql
volatile
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _key constant text := coalesce(
        choose_shard.concurrency_key, choose_shard.idempotency_key, choose_shard.dedup_key
    );
begin
    if coalesce(cardinality(choose_shard.shard_ids), 0) = 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'shard_ids');
    end if;
    return coalesce(
        jobq.shard_of(coalesce(choose_shard.batch_id, choose_shard.after[1])),
        case
            when _key is null
            then choose_shard.shard_ids[
                1 + floor(random() * cardinality(choose_shard.shard_ids))::integer
            ]
            when cardinality(choose_shard.shard_ids) = 1 then choose_shard.shard_ids[1]
            else (
                select s.shard_id
                from unnest(choose_shard.shard_ids) as s (shard_id)
                order by md5(s.shard_id || ':' || _key) collate "C" desc
                limit 1
            )
        end
    );
end
$$;

revoke all on function jobq.choose_shard from public;
grant execute on function jobq.choose_shard
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.choose_shard is
'Returns the shard that a new job goes to, by its keys or what it belongs to.';

-- Purpose: what makes a router's part of the public interface: the statements for its database,
-- after router.sql, written from this database's catalog and the table of routes.
-- Invariant: reads only. Raises: nothing.
-- Column ordinal: their order.
-- Column statement: one statement of SQL.
-- Returns: a row for each statement.
-- Example: select statement from jobq.list_router_statements() order by ordinal limit 1;
create or replace function jobq.list_router_statements()
returns table (ordinal integer, statement text)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select (row_number() over (order by s.part, s.name collate "C", s.statement collate "C"))::integer, s.statement
    from (
        select 1, t.typname::text, format('create type %s as (%s)', t.oid::regtype, (
            select string_agg(
                quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod), ', '
                order by a.attnum
            )
            from pg_attribute as a
            where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
        ))
        from pg_type as t
        where t.typnamespace = 'jobq'::regnamespace
        and t.oid in (select p.prorettype from pg_proc as p where p.pronamespace = 'jobq'::regnamespace)
        union all
        select 2, 'error', format(
            'create view jobq_private.error (code, sqlstate, http_status, message, hint) as values %s',
            string_agg(format(
                '(%L, %L, %s::smallint, %L, %L)',
                e.code, e.sqlstate, e.http_status, e.message, e.hint
            ), ', ' order by e.code)
        )
        from jobq_private.error as e
        union all
        select 3, 'error', 'grant select on jobq_private.error '
            'to jobq_owner, jobq_producer, jobq_worker, jobq_operator, jobq_reader'
        union all
        select 3, p.proname, pg_get_functiondef(p.oid)
        from pg_proc as p
        left join jobq_private.route as r on r.function_name = p.proname and r.detail = ''
        where p.pronamespace = 'jobq'::regnamespace and r.class = 'own'
        or p.oid = 'jobq_private.raise_error'::regproc
        union all
        select 4, f.name, c.statement
        from jobq_private.routed_function as f
        cross join lateral jobq_private.router_calls(f) as c
        union all
        select 5, f.name, jobq_private.router_function(f)
        from jobq_private.routed_function as f
        where f.class <> 'own'
        union all
        select 6, p.proname, format(
            'comment on function %s is %L', p.oid::regprocedure, obj_description(p.oid, 'pg_proc')
        )
        from pg_proc as p
        where p.pronamespace = 'jobq'::regnamespace
        union all
        select 6, p.proname, format('alter function %s owner to jobq_owner', p.oid::regprocedure)
        from pg_proc as p
        join jobq_private.route as r on r.function_name = p.proname
        where p.pronamespace = 'jobq'::regnamespace and r.class = 'own'
        union all
        select 7, p.proname, format('revoke all on function %s from public', p.oid::regprocedure)
        from pg_proc as p
        where p.pronamespace = 'jobq'::regnamespace
        union all
        select 8, p.proname, format(
            'grant all on function %s to %s', p.oid::regprocedure, string_agg(
                quote_ident(r.rolname), ', ' order by r.rolname
            )
        )
        from pg_proc as p
        cross join lateral aclexplode(p.proacl) as a
        join pg_roles as r on r.oid = a.grantee
        where p.pronamespace = 'jobq'::regnamespace
        and r.rolname in ('jobq_producer', 'jobq_worker', 'jobq_operator', 'jobq_reader')
        group by p.oid, p.proname
    ) as s (part, name, statement)
$$;

revoke all on function jobq.list_router_statements from public;

comment on function jobq.list_router_statements is
'Lists the statements that make a router of an empty database. For jobq_owner alone.';

-- Purpose: what all shards of a cluster must have alike, for a comparison of theirs, and schedules,
-- which one of them has.
-- Invariant: reads only; no value of a secret is in it, but a checksum. What each database stamps
-- by itself, such as times and version numbers, is left out. Raises: nothing.
-- Column type: map, interface (this version's functions), setting, retry_preset, kind, queue,
-- limit, payload_spec, config, secret, endpoint, queue_grant or schedule.
-- Column declaration: it, as JSON.
-- Returns: a row for each.
-- Example: select type, name from jobq.list_declarations();
create or replace function jobq.list_declarations()
returns table (type text, name text, declaration jsonb)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select d.type, d.name, d.declaration - array[
        'created_at', 'updated_at', 'paused_at', 'version', 'delivery_version', 'test_job_id',
        'ciphertext'
    ]
    from (
        select 'map', 'shards', jsonb_build_object('shards', (
            select jsonb_agg(s.shard_id order by s.shard_id) from jobq_private.shard as s
        ))
        union all
        select 'map', 'epoch ' || e.epoch, jsonb_build_object('shards', e.shard_ids)
        from jobq_private.shard_epoch as e
        union all
        select
            'interface', 'functions',
            jsonb_build_object('checksum', md5(string_agg(s.statement, ';' order by s.ordinal)))
        from jobq.list_router_statements() as s
        union all
        select 'setting', 'settings', to_jsonb(s) from jobq_private.setting as s
        union all
        select 'retry_preset', r.retry_preset, to_jsonb(r) from jobq_private.retry_preset as r
        union all
        select 'kind', k.kind, to_jsonb(k) from jobq_private.kind as k
        union all
        select
            'queue', q.queue,
            to_jsonb(q) || jsonb_build_object('is_paused', q.paused_at is not null)
        from jobq_private.queue as q
        union all
        select 'limit', l.queue || ' ' || l.concurrency_key, to_jsonb(l)
        from jobq_private.key_limit as l
        union all
        select 'payload_spec', p.payload_spec, to_jsonb(p) from jobq_private.payload_spec as p
        union all
        select 'config', c.config, to_jsonb(c) from jobq_private.config as c
        union all
        select
            'secret', s.secret,
            to_jsonb(s) || jsonb_build_object('checksum', md5(s.ciphertext))
        from jobq_private.secret as s
        union all
        select
            'endpoint', e.endpoint,
            to_jsonb(e) || jsonb_build_object('is_paused', e.paused_at is not null)
        from jobq_private.endpoint as e
        union all
        select 'queue_grant', concat_ws(' ', g.grantee, g.queue, g.privilege), to_jsonb(g)
        from jobq_private.queue_grant as g
        union all
        select 'schedule', s.name, jsonb_build_object('schedule_id', s.schedule_id)
        from jobq_private.schedule as s
        where s.status <> 'retired'
    ) as d (type, name, declaration)
    order by d.type, d.name
$$;

revoke all on function jobq.list_declarations from public;

comment on function jobq.list_declarations is
'Lists what all shards of a cluster must have alike, and the schedules, which one of them has. For jobq_owner alone.';

-- Purpose: which shards got new keys from when on, the newest first, and for how long keys of
-- the epochs before may live.
-- Invariant: reads only. Raises: nothing.
-- Column epoch: its number.
-- Column shard_ids: the shards that get new keys.
-- Column began_at: from when on; it may lie ahead.
-- Column keys_until: until when idempotency keys of the epoch before may live.
-- Returns: a row for each epoch; none in a database that is in no cluster.
-- Example: select epoch, shard_ids from jobq.list_epochs();
create or replace function jobq.list_epochs()
returns table (
    epoch integer, shard_ids integer[], began_at timestamptz, keys_until timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select e.epoch, e.shard_ids, e.began_at, e.began_at + s.key_retention
    from jobq_private.shard_epoch as e
    cross join jobq_private.setting as s
    order by e.epoch desc
$$;

revoke all on function jobq.list_epochs from public;
grant execute on function jobq.list_epochs
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_epochs is
'Lists which shards get new keys, and from when on, the newest first.';

-- Purpose: the databases of the cluster, as this one knows them.
-- Invariant: reads only. Raises: nothing.
-- Column shard_id: its number.
-- Column url: how routers and clients reach it.
-- Column is_own: whether it is this database.
-- Returns: a row for each shard; none in a database that is in no cluster.
-- Example: select shard_id, url from jobq.list_shards();
create or replace function jobq.list_shards()
returns table (shard_id integer, url text, is_own boolean)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.shard_id, s.url, s.is_own
    from jobq_private.shard as s
    order by s.shard_id
$$;

revoke all on function jobq.list_shards from public;
grant execute on function jobq.list_shards
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_shards is 'Lists the databases of the cluster.';

-- Purpose: say which shards get new keys from a time on.
-- Invariant: what lives stays where it is. Epochs are numbered without gaps, and one that has
-- begun is never changed, so that whoever holds a key finds what was made with it. The same
-- epoch put again changes nothing.
-- Raises: 22004, 22023.
-- Argument epoch: its number: that of the last and 1.
-- Argument shard_ids: the shards that get new keys, each of which put_shard has named; a shard
-- that is left out is drained.
-- Argument began_at: from when on; give one some seconds ahead, for routers and clients to
-- learn of it. Null means now.
-- Returns: nothing.
-- Example: select jobq.put_epoch(1, '{0}');
create or replace function jobq.put_epoch(
    epoch integer, shard_ids integer[], began_at timestamptz default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _last integer;
begin
    if num_nulls(put_epoch.epoch, put_epoch.shard_ids) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'epoch and shard_ids');
    elsif coalesce(array_ndims(put_epoch.shard_ids), 0) <> 1 or exists (
        select from unnest(put_epoch.shard_ids) as i (shard_id)
        left join jobq_private.shard as s using (shard_id)
        group by i.shard_id
        having count(*) > 1 or count(s.shard_id) = 0
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'shard_ids must be shards that put_shard has named, each once'
        );
    end if;
    lock table jobq_private.shard_epoch in share row exclusive mode;
    select max(e.epoch) into _last from jobq_private.shard_epoch as e;
    if exists (
        select from jobq_private.shard_epoch as e
        where e.epoch = put_epoch.epoch and e.shard_ids = put_epoch.shard_ids
    ) then
        return;
    elsif put_epoch.epoch <> coalesce(_last, 0) + 1 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', format('epoch must be %s', coalesce(_last, 0) + 1)
        );
    end if;
    insert into jobq_private.shard_epoch (epoch, shard_ids, began_at)
    values (put_epoch.epoch, put_epoch.shard_ids, coalesce(put_epoch.began_at, now()));
    perform jobq_private.record_audit(
        'put epoch', put_epoch.epoch::text, put_epoch.shard_ids::text
    );
end
$$;

revoke all on function jobq.put_epoch from public;

comment on function jobq.put_epoch is
'Says which shards get new keys from a time on. For jobq_owner alone.';

-- Purpose: name a database of the cluster, or say that it is this one.
-- Invariant: the ids that are made from then on carry the number. A database that has had jobs
-- keeps its number, 0 until it is given one, since their ids carry it.
-- Raises: 22004, 22023.
-- Argument shard_id: its number, 0 to 255.
-- Argument url: how routers and clients reach it, as a libpq URL without a password.
-- Argument is_own: whether it is the database of this call.
-- Returns: nothing.
-- Example: select jobq.put_shard(0, 'postgresql://one.example.org/jobq', is_own => true);
create or replace function jobq.put_shard(
    shard_id integer, url text, is_own boolean default false
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(put_shard.shard_id, put_shard.url, put_shard.is_own) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'shard_id, url and is_own');
    elsif put_shard.shard_id not between 0 and 255 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'shard_id must be from 0 to 255'
        );
    elsif length(put_shard.url) not between 1 and 2048 or put_shard.url ~ '://[^/@]*:[^/@]*@'
    or put_shard.url ~* 'password=' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'url has 1 to 2048 characters, and no password'
        );
    end if;
    if put_shard.is_own and put_shard.shard_id <> jobq_private.own_shard() then
        perform jobq_private.become_shard(put_shard.shard_id);
    end if;
    update jobq_private.shard as s
    set is_own = false
    where s.is_own and put_shard.is_own and s.shard_id <> put_shard.shard_id;
    insert into jobq_private.shard as s (shard_id, url, is_own)
    values (put_shard.shard_id, put_shard.url, put_shard.is_own)
    on conflict on constraint shard_pkey do update
    set url = excluded.url, is_own = excluded.is_own;
    perform jobq_private.record_audit('put shard', put_shard.shard_id::text, put_shard.url);
end
$$;

revoke all on function jobq.put_shard from public;

comment on function jobq.put_shard is
'Names a database of the cluster, or gives this one its number. For jobq_owner alone.';

reset role;

-- Deploy jobq:job to pg
-- Made by sql/snapshot.py from sql/job/: edit that.
set local role jobq_owner;

-- Purpose: the least UUID of version 7 that can have been made at a moment or later.
-- Invariant: the inverse of id_time(), to the millisecond. Raises: nothing.
create or replace function jobq_private.id_floor(moment timestamptz)
returns uuid
language sql
immutable
strict
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select (lpad(to_hex(
        greatest(0, least(281474976710655, floor(extract(epoch from moment) * 1000)))::bigint
    ), 12, '0') || repeat('0', 20))::uuid
$$;

revoke all on function jobq_private.id_floor from public;

comment on function jobq_private.id_floor is
'The least UUID of version 7 that can have been made at a moment or later.';

-- Purpose: every job, live and archived, as one relation that can be written to.
-- Invariant: inserts and updates go through the functions of the same meaning; see
-- job_insert and job_update. FOR UPDATE would lock nothing below a UNION and say nothing;
-- the outer join, which PostgreSQL takes out of every other plan, has it refused (0A000):
-- claim() is what takes jobs. attempts counts what counts against max_attempts.
-- Column attempts: how many attempts count against max_attempts.
-- Column result: what the attempt that succeeded returned.
-- Column worker: who runs it, or ran it last.
-- Column updated_at: when its state last changed.
-- Column expires_at: no attempt begins after this instant; null for never.
-- Column schedule_id: the schedule's version that made it, if one did.
create or replace view jobq.job as
select u.*
from (
    select
        j.job_id, j.kind, j.queue, j.state, j.previous_state, j.payload,
        null::jsonb as result,
        j.run_at::timestamptz, j.priority, j.attempt, j.attempt - j.uncounted as attempts, j.max_attempts,
        j.timeout, j.lease, j.worker, j.claimed_at, j.heartbeat_at, j.lease_expires_at,
        j.cancel_requested_at, j.cancel_reason, j.idempotency_key, j.dedup_key,
        j.concurrency_key,
        j.last_error_code, j.last_error::text as last_error, j.metadata, j.progress,
        j.schedule_id, j.slot_at, j.region, j.created_at, null::timestamptz as finished_at,
        j.delivery_version, j.expires_at, j.batch_id,
        case
            when j.lease_expires_at is not null then j.claimed_at
            else coalesce(j.waits_since, j.created_at)
        end as updated_at
    from jobq_private.job as j
    union all
    select
        a.job_id, a.kind, a.queue, a.state, a.previous_state, a.payload, a.result,
        a.run_at::timestamptz, a.priority, a.attempt, a.attempt - a.uncounted as attempts, a.max_attempts,
        a.timeout, a.lease, a.worker, a.claimed_at, a.heartbeat_at, null,
        a.cancel_requested_at, a.cancel_reason, a.idempotency_key, a.dedup_key,
        a.concurrency_key,
        a.last_error_code, a.last_error::text, a.metadata, a.progress, a.schedule_id, a.slot_at,
        a.region, a.created_at, a.finished_at, a.delivery_version,
        a.expires_at, a.batch_id, a.finished_at
    from jobq_private.job_archive as a
) as u
left join jobq_private.schedule as s on s.schedule_id = u.schedule_id;

revoke all on jobq.job from public;
grant select on jobq.job to jobq_reader;
grant select, update on jobq.job to jobq_operator;
grant select, insert on jobq.job to jobq_producer;

comment on view jobq.job is
'Every job, live and archived. Insert enqueues; updating state performs the transition; rows are not locked here, claim() takes jobs.';

-- Purpose: refuse a row of the archive whose job has not ended.
-- Invariant: queued stands in the archive only while a redrive takes the job out. The
-- WHEN clause keeps the function away from every job that succeeds: a row without a lane can be
-- no other, as a check says. It is short, since PostgreSQL reads its text again for every
-- statement. Raises: JQ002.
create or replace function jobq_private.refuse_unfinished()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.state in ('succeeded', 'dead', 'cancelled') then
        return new;
    end if;
    perform jobq_private.raise_error('ILLEGAL_STATE', format(
        'job_id %s: no job is archived as %s', new.job_id, new.state
    ));
    return null;
end
$$;

revoke all on function jobq_private.refuse_unfinished from public;

comment on function jobq_private.refuse_unfinished is
'Refuses a row of the archive whose job has not ended.';

create or replace trigger archive_birth
before insert on jobq_private.job_archive
for each row when (new.lane is not null)
execute function jobq_private.refuse_unfinished();

-- Purpose: a finished job is history: nothing of it changes, but dead and cancelled jobs
-- may go back to queued.
-- Invariant: a change of state stamps previous_state and its lane, and the foreign key
-- decides; the rest of the row stays as it is. Raises: JQ002.
create or replace function jobq_private.guard_archive()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _kept jobq_private.job_archive := new;
begin
    _kept.state := old.state;
    if new.state = old.state or _kept is distinct from old then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s is finished: %s', old.job_id, old.state
        ));
    end if;
    new.previous_state := old.state;
    new.lane := (pg_backend_pid() & 1023)::smallint;
    return new;
end
$$;

revoke all on function jobq_private.guard_archive from public;

comment on function jobq_private.guard_archive is
'Refuses a change of a finished job, but for its redrive.';

create or replace trigger archive_immutable
before update on jobq_private.job_archive
for each row execute function jobq_private.guard_archive();

-- Purpose: move live jobs into the archive in a final state, as one statement; delete those
-- that succeed and leave no trace.
-- Invariant: only the attempt that holds the lease moves a running job, and only to be
-- cancelled does a job move that waits; the archive's foreign key refuses an illegal change,
-- and its check what is no success where the lane is null. The state is deliberately not
-- compared with 'running', and the ids stand as an array, so that only the primary key can
-- serve the delete, whatever the statistics say, in the order of ids that every batch uses.
-- What another transaction holds is waited for, or passed over where that is asked for.
-- The time is read by the statement that has locked the archive (ROW EXCLUSIVE), not before it:
-- listen_events() finds by that lock who may still add an earlier end.
-- Clients that wait for these jobs are told, also of those that did not move: they look.
-- Returns how many attempts moved, as of when, and which of them left no trace. Raises: 23503 for an illegal change.
create or replace function jobq_private.archive_jobs(
    job_ids uuid[], attempts integer[], state text, results jsonb, skip_held boolean,
    out moved integer, out finished_at timestamptz, out gone uuid[],
    out gone_attempts integer[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
declare
    _snapshot constant pg_snapshot := pg_current_snapshot();
    _open constant integer := age(pg_snapshot_xmin(_snapshot)::xid);
    _next constant xid8 := pg_snapshot_xmax(_snapshot);
    _self constant xid := pg_current_xact_id_if_assigned()::xid;
    _ending constant integer := array_position(
        '{succeeded,dead,cancelled}', archive_jobs.state
    );
    _queues text[];
    _lanes uuid[];
    _kinds text[];
    _endings jobq_private.ending[];
begin
    with clock as materialized (
        select clock_timestamp() as at
    ),
    ended as (
        delete from jobq_private.job as j
        using (
            select g.*
            from rows from (
                unnest(archive_jobs.job_ids, archive_jobs.attempts),
                jsonb_array_elements(archive_jobs.results)
            ) as g (job_id, attempt, result)
            order by g.job_id
        ) as f
        where j.job_id = any(archive_jobs.job_ids)
        and j.job_id = f.job_id
        and j.attempt = f.attempt
        and (
            j.lease_expires_at is not null
            or archive_jobs.state in (j.state, 'cancelled')
        )
        and (
            not archive_jobs.skip_held
            or age(j.xmax) > _open
            or j.xmax = _self
            or jobq_private.is_over(j.xmax, _next)
        )
        returning
            j.*, nullif(f.result, 'null') as result,
            j.lane_id is not null or j.place is not null as has_place,
            j.keep[_ending] = '0' and not j.is_awaited and j.batch_id is null as leaves_nothing
    ),
    stored as (
        insert into jobq_private.job_archive (
            job_id, created_at, run_at, claimed_at, heartbeat_at, cancel_requested_at,
            slot_at, lease, timeout, schedule_id, attempt, uncounted, max_attempts,
            expiries, priority, state, previous_state, region, queue, kind, worker,
            idempotency_key, dedup_key, dedup, cancel_reason, last_error_code,
            last_error, last_error_details, metadata, progress, payload, delivery_version,
            finished_at, result, lane_id, concurrency_key, lane, expires_at, keep, prune_at,
            is_awaited, batch_id
        )
        select
            g.job_id, g.created_at, g.run_at, g.claimed_at, g.heartbeat_at,
            g.cancel_requested_at, g.slot_at, g.lease, g.timeout, g.schedule_id,
            g.attempt, g.uncounted, g.max_attempts, g.expiries, g.priority,
            archive_jobs.state,
            case when g.state = archive_jobs.state then g.previous_state else g.state end,
            g.region, g.queue, g.kind, g.worker, g.idempotency_key, g.dedup_key, g.dedup,
            g.cancel_reason, g.last_error_code, g.last_error, g.last_error_details,
            g.metadata, g.progress, g.payload, g.delivery_version,
            c.at, g.result, g.lane_id, g.concurrency_key,
            case when archive_jobs.state <> 'succeeded' then pg_backend_pid() & 1023 end,
            g.expires_at, g.keep, c.at + g.keep[_ending], g.is_awaited, g.batch_id
        from ended as g
        cross join clock as c
        where g.leaves_nothing is not true
    )
    select
        count(*),
        (select c.at from clock as c),
        array_agg(g.queue) filter (where g.has_place),
        array_agg(g.lane_id) filter (where g.has_place),
        array_agg(g.kind) filter (where g.has_place),
        array_agg(g.job_id) filter (where g.leaves_nothing),
        array_agg(g.attempt) filter (where g.leaves_nothing),
        array_agg(
            row(g.queue, g.job_id, g.batch_id, g.is_awaited)::jobq_private.ending
        ) filter (where g.is_awaited or g.batch_id is not null)
    into
        archive_jobs.moved, archive_jobs.finished_at, _queues, _lanes, _kinds, archive_jobs.gone,
        archive_jobs.gone_attempts, _endings
    from ended as g;
    if archive_jobs.gone is not null then
        perform jobq_private.forget_traces(
            archive_jobs.gone, 1 < any(archive_jobs.gone_attempts)
        );
    end if;
    if _queues is not null then
        perform jobq_private.call_full_lanes(_queues, _lanes, _kinds);
    end if;
    if _endings is not null then
        perform jobq_private.leave_looks(_endings);
    end if;
    perform jobq_private.tell_ended(archive_jobs.job_ids);
end
$$;

revoke all on function jobq_private.archive_jobs from public;

comment on function jobq_private.archive_jobs is
'Moves live jobs into the archive in a final state.';

-- Purpose: a job that has gone back among the live ones leaves the archive.
-- Invariant: see archive_redrive. Raises: nothing.
create or replace function jobq_private.leave_archive()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from jobq_private.job_archive as a
    where a.job_id = new.job_id and a.finished_at = new.finished_at;
    return null;
end
$$;

revoke all on function jobq_private.leave_archive from public;

comment on function jobq_private.leave_archive is
'Takes a job that was redriven out of the archive.';

create or replace trigger archive_leave
after update on jobq_private.job_archive
for each row when (new.state in ('queued', 'blocked') and old.state in ('dead', 'cancelled'))
execute function jobq_private.leave_archive();

-- Purpose: a finished job that is set to queued or blocked goes back among the live ones; it stays as
-- it is where its idempotency key or dedup key stands for another job by now.
-- Invariant: the attempt goes on counting, as a fencing token must; what was spent so far
-- no longer counts against max_attempts, and it does not expire again. Before the update, so
-- that it can be dropped; after it, archive_leave takes the row out. Nobody looks whether others
-- wait for it: it counts as awaited. Raises: nothing.
create or replace function jobq_private.redrive_archived()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.idempotency_key is not null and new.job_id <> jobq_private.hold_key(
        new.kind, new.queue, new.idempotency_key, new.job_id
    ) then
        return null;
    end if;

    insert into jobq_private.job (
        job_id, created_at, run_at, slot_at, lease, timeout, schedule_id, attempt,
        uncounted, max_attempts, priority, state, previous_state, region, queue, kind,
        idempotency_key, dedup_key, dedup, last_error_code, last_error,
        last_error_details, metadata, payload, delivery_version,
        lane_id, concurrency_key, keep, is_awaited, batch_id,
        waits_since
    )
    values (
        new.job_id, new.created_at, now(), new.slot_at, new.lease, new.timeout,
        new.schedule_id, new.attempt, new.attempt, new.max_attempts, new.priority,
        new.state, new.previous_state, new.region, new.queue, new.kind,
        new.idempotency_key, new.dedup_key, new.dedup,
        case when new.last_error_code not in ('PARENT_FAILED', 'PARENT_GONE') then new.last_error_code end,
        case when new.last_error_code not in ('PARENT_FAILED', 'PARENT_GONE') then new.last_error end,
        new.last_error_details, new.metadata, new.payload,
        new.delivery_version, new.lane_id, new.concurrency_key, new.keep, true,
        new.batch_id, clock_timestamp()
    )
    on conflict (kind, dedup_key, (case when dedup is null then job_id end))
    where dedup_key is not null do nothing;
    if not found then
        return null;
    end if;
    if new.lane_id is not null then
        update jobq_private.gate as g
        set held_until = '-infinity', hold_reason = null
        where g.gate_id = new.lane_id and g.head_job_id = new.job_id
        and g.held_until = 'infinity';
        perform jobq_private.call_lane(
            new.lane_id, new.queue, new.concurrency_key, new.priority, now()
        );
    end if;
    if new.state = 'blocked' then
        insert into jobq_private.look (about, id) values ('child', new.job_id);
    end if;
    perform jobq_private.wake(array[new.queue]);
    return new;
end
$$;

revoke all on function jobq_private.redrive_archived from public;

comment on function jobq_private.redrive_archived is
'Puts a finished job that is set to queued back among the live ones.';

create or replace trigger archive_redrive
before update on jobq_private.job_archive
for each row when (new.state in ('queued', 'blocked') and old.state in ('dead', 'cancelled'))
execute function jobq_private.redrive_archived();

-- Purpose: cancel jobs that the caller has locked: those that wait at once, those that run by
-- asking their workers.
-- Invariant: a statement for each step, whatever their number; what waits goes straight into
-- the archive, whose foreign key checks the change. Raises: nothing of its own.
create or replace function jobq_private.cancel_jobs(job_ids uuid[], reason text)
returns table (job_id uuid, outcome text)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    _asked text[];
    _waiting uuid[];
    _attempts integer[];
begin
    with asked as (
        update jobq_private.job as j
        set
            cancel_requested_at = coalesce(j.cancel_requested_at, now()),
            cancel_reason = coalesce(j.cancel_reason, cancel_jobs.reason)
        where j.job_id = any(cancel_jobs.job_ids) and j.lease_expires_at is not null
        returning j.queue
    )
    select array_agg(distinct a.queue) into _asked from asked as a;
    perform jobq_private.notify('jobq_cancel', q) from unnest(_asked) as q;

    if cancel_jobs.reason is not null then
        update jobq_private.job as j
        set cancel_reason = cancel_jobs.reason
        where j.job_id = any(cancel_jobs.job_ids) and j.lease_expires_at is null;
    end if;
    select array_agg(j.job_id), array_agg(j.attempt) into _waiting, _attempts
    from jobq_private.job as j
    where j.job_id = any(cancel_jobs.job_ids) and j.lease_expires_at is null;
    if _waiting is not null then
        perform jobq_private.archive_jobs(_waiting, _attempts, 'cancelled', null, false);
    end if;
    insert into jobq_private.audit (action, subject, reason)
    select 'cancel', c.job_id::text, cancel_jobs.reason
    from unnest(cancel_jobs.job_ids) as c (job_id);
    return query
    select c.job_id, case
        when exists (
            select from jobq_private.job as j where j.job_id = c.job_id
        )
        then 'cancel_requested'
        else 'cancelled'
    end
    from unnest(cancel_jobs.job_ids) as c (job_id);
end
$$;

revoke all on function jobq_private.cancel_jobs from public;

comment on function jobq_private.cancel_jobs is
'Cancels jobs that the caller has locked, and says of each how.';

-- Purpose: read what is to change of waiting jobs, and refuse what no new job could have.
-- Invariant: reads only. What a payload must fit is looked up for each kind of these jobs; the
-- limit of a queue counts only those that come from another.
-- Raises: 22004, 22023, JQ005, JQ006, JQ010.
create or replace function jobq_private.check_change(changes jsonb, job_ids uuid[])
returns jobq_private.new_job
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _known constant text[] := array['run_at', 'priority', 'queue', 'payload', 'timeout', 'expires_at'];
    _set jobq_private.new_job;
    _settings jobq_private.settings;
begin
    if changes is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'changes');
    elsif jsonb_typeof(changes) <> 'object' or changes = '{}' or changes - _known <> '{}'
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'changes must be an object with members among %s', _known
        ));
    end if;
    _set := jsonb_populate_record(null::jobq_private.new_job, changes);
    _set.ordinal := 1;
    for _set.kind in
        select j.kind from jobq_private.job as j where j.job_id = any(check_change.job_ids)
        union
        select '*'
    loop
        _settings := jobq_private.settings_for(_set.kind, _set.queue);
        _settings.max_depth := null;
        if _set.payload is null then
            _settings.payload_schema := null;
            _settings.json_schema := null;
        end if;
        perform jobq_private.check_new_job(_set, _settings);
    end loop;
    if _set.queue is not null then
        perform jobq_private.check_queue_depth(array(
            select row(
                1, j.kind, null, _set.queue, null, null, null, null, null, null, null, null,
                null, null, null, null, null, null, null, null, null
            )::jobq_private.new_job
            from jobq_private.job as j
            where j.job_id = any(check_change.job_ids) and j.queue <> _set.queue
        ));
    end if;
    return _set;
end
$$;

revoke all on function jobq_private.check_change from public;

comment on function jobq_private.check_change is
'Reads what is to change of waiting jobs, and refuses what no new job could have.';

-- Purpose: refuse what listen_events() cannot answer.
-- Invariant: on a standby the locks of the primary are not to be seen, and in a transaction
-- with one snapshot what others commit is not. Raises: 22004, 22023.
create or replace function jobq_private.check_listening(
    after text, queues text[], kinds text[], since timestamptz, max_events integer
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem constant text := case
        when max_events not between 1 and 1000
        then 'max_events must be from 1 to 1000'
        when cardinality(queues) = 0 or cardinality(kinds) = 0
        then 'queues and kinds name at least one each, or are null'
        when after is not null and since is not null
        then 'give after or since, and not both'
        when since not between '1970-01-01 UTC' and clock_timestamp()
        then 'since must lie between 1970 and now'
        when pg_is_in_recovery()
        then 'a standby cannot tell events; ask the primary'
        when current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')
        then 'events are read at the isolation level read committed'
    end;
begin
    if array_ndims(queues) > 1 or array_ndims(kinds) > 1 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'queues and kinds must have one dimension'
        );
    elsif max_events is null
        or array_position(queues, null) is not null
        or array_position(kinds, null) is not null
    then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_events, or one of queues or kinds');
    elsif _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;
end
$$;

revoke all on function jobq_private.check_listening from public;

comment on function jobq_private.check_listening is
'Refuses what listen_events() cannot answer.';

-- Purpose: whether a JSON value holds a number beyond the range of a double.
-- Invariant: jsonb keeps such numbers (1e131071 has nine characters), but readers of JSON
-- refuse them, and with them the whole batch that a worker has claimed. A short text
-- cannot hold one, so only long ones are searched. Raises: nothing.
create or replace function jobq_private.has_huge_number(value jsonb)
returns boolean
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(
        octet_length(value::text) > 308
        and jsonb_path_exists(value, 'strict $.** ? (@ >= 1.8e308 || @ <= -1.8e308)'), false
    )
$$;

revoke all on function jobq_private.has_huge_number from public;

comment on function jobq_private.has_huge_number is
'Says whether a JSON value holds a number beyond the range of a double.';

-- Purpose: why a new job is not acceptable by itself: the error's code and its detail; null
-- when it is. size is the bytes of payload and metadata as text.
-- Invariant: a payload is looked at only where its text is long enough to be too deep or to
-- hold a huge number; years as clients in any time zone can hold them. No SET clause, so
-- that it is inlined, for one job as for a batch.
-- Raises: by its callers, 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.new_job_problem(
    job jobq_private.new_job, size integer, max_bytes integer, max_depth integer
)
returns text[]
language sql
stable
parallel safe
security invoker
as $$
    select case
        when job.kind is null then array['NULL_ARGUMENT', 'kind']
        when pg_catalog.length(job.kind) not between 1 and 128
        then array['INVALID_ARGUMENT', 'kind must have 1 to 128 characters']
        when pg_catalog.length(job.queue) not between 1 and 128
        then array['INVALID_ARGUMENT', 'queue must have 1 to 128 characters']
        when job.priority not between -32768 and 32767
        then array['INVALID_ARGUMENT', 'priority must be from -32768 to 32767']
        when job.max_attempts not between 1 and 10000
        then array['INVALID_ARGUMENT', 'max_attempts must be from 1 to 10000']
        when job.timeout not between '1 ms' and '365 days'
        then array['INVALID_ARGUMENT', 'timeout must be from 1 ms to 365 days']
        when job.run_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        then array['INVALID_ARGUMENT', 'run_at must be in the years 1 to 9999']
        when job.expires_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        or job.expires_at <= coalesce(job.run_at, pg_catalog.now())
        then array[
            'INVALID_ARGUMENT', 'expires_at must be after run_at, in the years 1 to 9999'
        ]
        when pg_catalog.length(job.idempotency_key) not between 1 and 512
        then array['INVALID_ARGUMENT', 'idempotency_key must have 1 to 512 characters']
        when pg_catalog.length(job.dedup_key) not between 1 and 512
        then array['INVALID_ARGUMENT', 'dedup_key must have 1 to 512 characters']
        when job.dedup not in ('skip', 'enqueue', 'replace', 'debounce', 'throttle')
        then array['INVALID_ARGUMENT', 'dedup must be skip, enqueue, replace, debounce or throttle']
        when job.dedup = 'replace' and job.dedup_key is null
        then array['INVALID_ARGUMENT', 'dedup is replace, which needs a dedup_key']
        when pg_catalog.octet_length(job.concurrency_key) not between 1 and 1024
        then array['INVALID_ARGUMENT', 'concurrency_key must have 1 to 1024 bytes']
        when pg_catalog.jsonb_typeof(job.metadata) <> 'object'
        then array['INVALID_ARGUMENT', 'metadata must be a JSON object']
        when size > max_bytes
        then array[
            'PAYLOAD_TOO_LARGE', pg_catalog.format('%s bytes, at most %s', size, max_bytes)
        ]
        when size > 2 * max_depth and (
            pg_catalog.jsonb_path_exists(
                job.payload, pg_catalog.format('strict $.**{%s}', max_depth)::jsonpath
            )
            or pg_catalog.jsonb_path_exists(
                job.metadata, pg_catalog.format('strict $.**{%s}', max_depth)::jsonpath
            )
        )
        then array['PAYLOAD_TOO_DEEP', pg_catalog.format('at most %s levels', max_depth)]
        when size > 308 and (
            jobq_private.has_huge_number(job.payload)
            or jobq_private.has_huge_number(job.metadata)
        )
        then array['PAYLOAD_INVALID', 'a number beyond the range of a double']
    end
$$;

revoke all on function jobq_private.new_job_problem from public;

comment on function jobq_private.new_job_problem is
'Says why a new job is not acceptable by itself, as the code of an error and its detail.';

-- Purpose: refuse a new job that is not acceptable under the settings that hold for it.
-- Invariant: reads only; what its kind and queue do not ask for costs no query. Returns
-- true, so that it can stand in a condition; there it returns false, if may_be_false, for a job that
-- is not acceptable by itself, so that the error does not tell the whole statement.
-- Raises: 22004, 22023, JQ005, JQ006, JQ010.
create or replace function jobq_private.check_new_job(
    job jobq_private.new_job, settings jobq_private.settings, may_be_false boolean default false
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _size constant integer := coalesce(octet_length(job.payload::text), 0)
        + coalesce(octet_length(job.metadata::text), 0);
    _problem constant text[] := jobq_private.new_job_problem(
        job, _size, settings.max_payload_bytes, settings.max_payload_depth
    );
begin
    if _problem is not null and may_be_false then
        return false;
    elsif _problem is not null then
        perform jobq_private.raise_error(
            _problem[1], format('job %s: %s', job.ordinal, _problem[2])
        );
    end if;
    if num_nonnulls(settings.payload_schema, settings.json_schema) > 0 then
        if may_be_false and jobq_private.payload_schema_problem(array[job]) is not null then
            return false;
        end if;
        perform jobq_private.check_payload_schemas(array[job]);
    end if;
    if settings.concurrency_key is not null then
        perform jobq_private.check_concurrency_key(job, settings.concurrency_key);
    end if;
    if settings.max_depth is not null then
        perform jobq_private.check_queue_depth(array[job]);
    end if;
    return true;
end
$$;

revoke all on function jobq_private.check_new_job from public;

comment on function jobq_private.check_new_job is
'Refuses a new job that is not acceptable under the settings that hold for it.';

-- Purpose: refuse a batch of new jobs when one of them is not acceptable.
-- Invariant: reads only; check_new_job() is the shorter way for one. Schemas of payloads are
-- not looked at before store_jobs() and store_job(), in the statement that stores.
-- Raises: 22004, 22023, JQ005, JQ006, JQ010.
create or replace function jobq_private.check_new_jobs(jobs jobq_private.new_job[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _problem text[];
    _bytes integer;
    _depth integer;
begin
    select g.max_payload_bytes, g.max_payload_depth into _bytes, _depth
    from jobq_private.setting as g;

    select array[p.problem[1], format('job %s: %s', p.ordinal, p.problem[2])] into _problem
    from (
        select j.ordinal, jobq_private.new_job_problem(j, t.size, _bytes, _depth) as problem
        from unnest(check_new_jobs.jobs) as j
        cross join lateral (
            select coalesce(octet_length(j.payload::text), 0)
                + coalesce(octet_length(j.metadata::text), 0) as size
            offset 0
        ) as t
    ) as p
    where p.problem is not null
    limit 1;

    if _problem is not null then
        perform jobq_private.raise_error(_problem[1], _problem[2]);
    end if;
    perform jobq_private.check_concurrency_keys(check_new_jobs.jobs);
    perform jobq_private.check_queue_depth(check_new_jobs.jobs);
end
$$;

revoke all on function jobq_private.check_new_jobs from public;

comment on function jobq_private.check_new_jobs is
'Refuses a batch of new jobs when one of them is not acceptable.';

-- Purpose: which payload of a batch of new jobs does not fit the schema of its kind, and why; null
-- where all do.
-- Invariant: kinds without a schema cost one probe of a small table; a JSON Schema that
-- the database cannot enforce by itself is one for its extension. Raises: by its callers, JQ006.
create or replace function jobq_private.payload_schema_problem(jobs jobq_private.new_job[])
returns text
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
    select format('job %s: %s', j.ordinal, v.violation)
    from unnest(payload_schema_problem.jobs) as j
    join jobq_private.kind as k
        on k.kind = j.kind and (k.payload_schema is not null or k.json_schema is not null)
    cross join lateral (
        select case
            when k.payload_schema is not null then jobq_private.schema_violation(
                k.payload_schema, coalesce(j.payload, '{}'), 'payload'
            )
            else jobq_private.json_schema_violation(
                k.json_schema, coalesce(j.payload, '{}')
            )
        end as violation
    ) as v
    where v.violation is not null
    limit 1
$$;

revoke all on function jobq_private.payload_schema_problem from public;

comment on function jobq_private.payload_schema_problem is
'Says which payload of a batch of new jobs does not fit the schema of its kind, and why.';

-- Purpose: refuse a batch of new jobs when a payload does not fit the schema of its kind.
-- Invariant: returns true, so that it can stand in a condition: within the statement that pins the
-- version of a delivery it sees what that sees. Raises: JQ006.
create or replace function jobq_private.check_payload_schemas(jobs jobq_private.new_job[])
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem constant text := jobq_private.payload_schema_problem(jobs);
begin
    if _problem is not null then
        perform jobq_private.raise_error('PAYLOAD_INVALID', _problem);
    end if;
    return true;
end
$$;

revoke all on function jobq_private.check_payload_schemas from public;

comment on function jobq_private.check_payload_schemas is
'Refuses a batch of new jobs when a payload does not fit the schema of its kind.';

-- Purpose: refuse a batch of new jobs when a queue would pass its max_depth.
-- Invariant: counts at most max_depth index entries, and only for queues that have a
-- limit. A job whose key is held adds nothing, so that a producer that tries again gets
-- its job; nor does the slot of a schedule, which was promised. Concurrent callers may
-- pass it together by what they add at that moment.
-- Raises: JQ010.
create or replace function jobq_private.check_queue_depth(jobs jobq_private.new_job[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue text;
    _limit integer;
    _adding bigint;
    _depth bigint;
begin
    if not exists (select from jobq_private.queue as q where q.max_depth is not null) then
        return;
    end if;
    for _queue, _limit, _adding in
        select s.queue, s.max_depth, sum(d.jobs)
        from (
            select j.kind, j.queue, count(*) as jobs
            from unnest(check_queue_depth.jobs) as j
            where j.schedule_id is null
            and not exists (
                select from jobq_private.idempotency_key as k
                where k.kind = j.kind and k.idempotency_key = j.idempotency_key
            )
            and not exists (
                select from jobq_private.job as l
                where l.kind = j.kind and l.dedup_key = j.dedup_key and l.dedup is not null
            )
            group by j.kind, j.queue
        ) as d
        cross join lateral jobq_private.settings_for(d.kind, d.queue) as s
        where s.max_depth is not null
        group by s.queue, s.max_depth
    loop
        select count(*) into _depth
        from (
            select from jobq_private.job as j
            where j.queue = _queue and j.state in ('queued', 'retrying')
            and j.lane_id is null
            union all
            select from jobq_private.job as j
            where j.queue = _queue and j.state in ('queued', 'retrying')
            and j.lane_id is not null
            limit _limit
        ) as present;
        if _depth + _adding > _limit then
            perform jobq_private.raise_error('QUEUE_FULL', format(
                'queue %s: max_depth %s, %s more asked for', _queue, _limit, _adding
            ));
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.check_queue_depth from public;

comment on function jobq_private.check_queue_depth is
'Refuses a batch of new jobs when a queue would pass its max_depth.';

-- Purpose: lock the jobs that an operator has chosen, and return their ids.
-- Invariant: bounded, oldest first, locked in the order of ids, live jobs before finished
-- ones. Jobs named by id must all be there in one of the states; a filter takes those that
-- are. Raises: 22004, 22023, JQ001, JQ002.
create or replace function jobq_private.choose_jobs(
    job_ids uuid[], queue text, kind text, metadata jsonb, max_jobs integer,
    dry_run boolean, reason text, states text[]
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
    _chosen uuid[];
    _missing uuid;
    _state text;
begin
    if num_nulls(max_jobs, dry_run) > 0
        or exists (select from unnest(job_ids) as g (job_id) where g.job_id is null)
    then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_ids, max_jobs and dry_run');
    elsif num_nonnulls(job_ids, queue, kind, metadata) = 0 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'give job_ids, queue, kind or metadata'
        );
    elsif max_jobs not between 1 and 100000 or cardinality(job_ids) > max_jobs then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'max_jobs must be from 1 to 100000, and no fewer than the job_ids'
        );
    elsif length(reason) > 512 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'reason must have at most 512 characters'
        );
    end if;

    _chosen := array(
        select j.job_id
        from jobq_private.job as j
        where j.state = any(choose_jobs.states)
        and (choose_jobs.job_ids is null or j.job_id = any(choose_jobs.job_ids))
        and (choose_jobs.queue is null or j.queue = choose_jobs.queue)
        and (choose_jobs.kind is null or j.kind = choose_jobs.kind)
        and (choose_jobs.metadata is null or j.metadata @> choose_jobs.metadata)
        order by j.job_id
        limit choose_jobs.max_jobs
        for update
    );
    if states && '{succeeded,dead,cancelled}' and cardinality(_chosen) < max_jobs then
        _chosen := _chosen || array(
            select a.job_id
            from jobq_private.job_archive as a
            where a.state = any(choose_jobs.states)
            and (choose_jobs.job_ids is null or a.job_id = any(choose_jobs.job_ids))
            and (choose_jobs.queue is null or a.queue = choose_jobs.queue)
            and (choose_jobs.kind is null or a.kind = choose_jobs.kind)
            and (choose_jobs.metadata is null or a.metadata @> choose_jobs.metadata)
            order by a.job_id
            limit choose_jobs.max_jobs - cardinality(_chosen)
            for update
        );
    end if;

    for _missing in
        select m from unnest(choose_jobs.job_ids) as m where m <> all(_chosen) order by m
    loop
        _state := (jobq.get_job(_missing)).state;
        if _state <> all(states) then
            perform jobq_private.raise_error('ILLEGAL_STATE', format(
                'job_id %s is %s; it would have to be %s', _missing, _state,
                array_to_string(states, ' or ')
            ));
        end if;
    end loop;
    return _chosen;
end
$$;

revoke all on function jobq_private.choose_jobs from public;

comment on function jobq_private.choose_jobs is
'Locks the jobs that an operator has chosen, and returns their ids.';

-- Purpose: read a cursor of listen_events().
-- Invariant: refuses what event_cursor() has not written, and a place that the clock has yet to
-- reach; a minute is allowed for, since a standby that was promoted has a clock of its own.
-- Raises: 22023.
create or replace function jobq_private.cursor_place(
    cursor text, out at timestamptz, out job_id uuid
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if cursor_place.cursor !~ '^[0-9]{1,16}_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after must be a cursor of listen_events()'
        );
    end if;
    at := timestamptz '1970-01-01 UTC'
        + interval '1 us' * split_part(cursor_place.cursor, '_', 1)::bigint;
    job_id := split_part(cursor_place.cursor, '_', 2)::uuid;
    if at > clock_timestamp() + interval '1 min' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after lies in the future: is it of another server?'
        );
    end if;
end
$$;

revoke all on function jobq_private.cursor_place from public;

comment on function jobq_private.cursor_place is
'Reads a cursor of listen_events().';

-- Purpose: drop the partitions of the history that are past retention.
-- Invariant: jobs that others still need go back to the history, and so to a partition of
-- their day that make_partitions() makes anew. Waits at most 100 ms for a lock; one that is not had is tried again at the
-- next call. Returns how many were dropped. Raises: nothing.
create or replace function jobq_private.drop_partitions()
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
set timezone = 'UTC'
as $$
declare
    _oldest constant date := (
        now() - (select g.retention from jobq_private.setting as g)
    )::date;
    _partition text;
    _dropped bigint := 0;
    _kept jobq_private.job_archive[];
    _is_needed boolean;
begin
    for _partition in
        select c.relname
        from pg_catalog.pg_inherits as i
        join pg_catalog.pg_class as c on c.oid = i.inhrelid
        where i.inhparent in (
            'jobq_private.job_archive'::regclass, 'jobq_private.attempt'::regclass,
            'jobq_private.job_log'::regclass
        )
        and c.relname ~ '_[0-9]{8}$'
        and to_date(right(c.relname, 8), 'YYYYMMDD') < _oldest
    loop
        _kept := null;
        if _partition like 'job_archive%' then
            execute format(
                'select not exists (select from jobq_private.%I as a'
                ' where not jobq_private.is_needed(a.job_id, a.is_awaited, a.batch_id, %L))',
                _partition, _oldest
            ) into _is_needed;
            continue when _is_needed;
            execute format(
                'select array_agg(row(a.*)::jobq_private.job_archive) from jobq_private.%I as a'
                ' where jobq_private.is_needed(a.job_id, a.is_awaited, a.batch_id, %L)',
                _partition, _oldest
            ) into _kept;
        end if;
        execute format('drop table jobq_private.%I', _partition);
        insert into jobq_private.job_archive select k.* from unnest(_kept) as k;
        _dropped := _dropped + 1;
    end loop;
    return _dropped;
exception
    when lock_not_available then
        raise notice using
            message = 'a history table is in use; what is past retention is left to the next call';
        return 0;
end
$$;

revoke all on function jobq_private.drop_partitions from public;

comment on function jobq_private.drop_partitions is
'Drops the partitions of the history that are past retention.';

-- Purpose: write a place among the jobs that have ended, as a cursor.
-- Invariant: microseconds, so that nothing is rounded; cursor_place() reads it. Raises: nothing.
create or replace function jobq_private.event_cursor(at timestamptz, job_id uuid)
returns text
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select (extract(epoch from event_cursor.at) * 1000000)::bigint || '_' || event_cursor.job_id
$$;

revoke all on function jobq_private.event_cursor from public;

comment on function jobq_private.event_cursor is
'Writes a place among the jobs that have ended, as a cursor.';

-- Purpose: up to when a page of listen_events() reads.
-- Invariant: the archive has no index in the order of ends, but its rows lie roughly in it. So
-- a span of a second grows until it holds a page, or 20,000 rows of any kind. Raises: nothing.
create or replace function jobq_private.event_span(
    since timestamptz, job_id uuid, until timestamptz, queues text[], kinds text[],
    max_events integer
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
    _span interval := interval '1 s';
    _to timestamptz;
    _fit bigint;
    _all bigint;
begin
    loop
        _to := least(event_span.since + _span, event_span.until);
        select
            count(*),
            count(*) filter (
                where (event_span.queues is null or a.queue = any(event_span.queues))
                and (event_span.kinds is null or a.kind = any(event_span.kinds))
            )
        into _all, _fit
        from jobq_private.job_archive as a
        where a.finished_at >= event_span.since
        and a.finished_at < _to
        and (a.finished_at, a.job_id) > (event_span.since, event_span.job_id);
        if _to = event_span.until or _fit >= event_span.max_events or _all >= 20000 then
            return _to;
        end if;
        _span := _span * 4;
    end loop;
end
$$;

revoke all on function jobq_private.event_span from public;

comment on function jobq_private.event_span is
'Returns up to when a page of events reads.';

-- Purpose: end waiting jobs that have expired, also where no worker would claim them.
-- Invariant: a bounded number at a call, by an index of such jobs alone; what somebody holds is
-- left to the next call. job_transition does the same to what a claim meets.
-- Returns how many ended. Raises: nothing.
create or replace function jobq_private.expire_jobs(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _ended bigint;
begin
    update jobq_private.job as j
    set
        state = 'dead', last_error_code = 'EXPIRED', last_error_details = null,
        last_error = 'it could not start before ' || j.expires_at
    where j.job_id = any(array(
        select e.job_id
        from jobq_private.job as e
        where e.expires_at < clock_timestamp() and e.state in ('queued', 'retrying')
        order by e.expires_at
        limit expire_jobs.max_rows
        for update skip locked
    ));
    get diagnostics _ended = row_count;
    return _ended;
end
$$;

revoke all on function jobq_private.expire_jobs from public;

comment on function jobq_private.expire_jobs is
'Ends waiting jobs that have expired.';

-- Purpose: the moment at which a UUID of version 7 was made, to the millisecond.
-- Invariant: a job's archive row is never older than its id, which lets lookups by id
-- pass over older partitions. Raises: nothing.
create or replace function jobq_private.id_time(id uuid)
returns timestamptz
language sql
immutable
strict
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select to_timestamp(
        ('x0000' || translate(left(id::text, 13), '-', ''))::bit(64)::bigint / 1000.0
    )
$$;

revoke all on function jobq_private.id_time from public;

comment on function jobq_private.id_time is
'The moment at which a UUID of version 7 was made.';

-- Purpose: forget what jobs that go have left beside their own rows: failed attempts, log,
-- steps and waits. Signals, which no index finds by the job, stay for the retention of events.
-- Invariant: nothing of it is older than the oldest of these jobs, so that partitions of the
-- days before are passed over. The caller holds the jobs' rows,
-- and may know that none of them has failed before. Raises: nothing.
create or replace function jobq_private.forget_traces(
    job_ids uuid[], have_failed boolean default true
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _since constant timestamptz := (
        select jobq_private.id_time(u.job_id) - interval '1 day'
        from unnest(forget_traces.job_ids) as u (job_id)
        order by u.job_id
        limit 1
    );
begin
    if have_failed then
        delete from jobq_private.attempt as a
        where a.job_id = any(forget_traces.job_ids) and a.finished_at >= _since;
    end if;
    delete from jobq_private.job_log as l
    where l.job_id = any(forget_traces.job_ids) and l.logged_at >= _since;
    delete from jobq_private.step as s where s.job_id = any(forget_traces.job_ids);
    delete from jobq_private.waiter as w where w.job_id = any(forget_traces.job_ids);
end
$$;

revoke all on function jobq_private.forget_traces from public;

comment on function jobq_private.forget_traces is
'Forgets failed attempts, log, steps and waits of jobs that go.';

-- Purpose: tell the clients that wait for these jobs, or for any event, that they have ended.
-- Invariant: one try-lock shows that nobody waits for any job; it is let go in the same
-- expression, between whose parts no cancel comes. Jobs share 1024 locks, so that a notification may be
-- needless. A completion that looked before a client announced itself tells it nothing:
-- clients look by themselves too. docs/wake-ups.md says more. Raises: nothing.
create or replace function jobq_private.tell_ended(job_ids uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _ending constant integer := jobq_private.lock_class('ending');
    _any_job constant integer := 1024;
    _any_event constant integer := 1025;
    _job_id uuid;
    _slot integer;
begin
    if not (
        pg_try_advisory_lock(_ending, _any_job) and pg_advisory_unlock(_ending, _any_job)
    ) then
        if not (
            pg_try_advisory_lock(_ending, _any_event)
            and pg_advisory_unlock(_ending, _any_event)
        ) then
            perform jobq_private.notify('jobq_events', '');
        end if;
        foreach _job_id in array tell_ended.job_ids loop
            _slot := hashtext(_job_id::text) & 1023;
            if not (
                pg_try_advisory_lock(_ending, _slot) and pg_advisory_unlock(_ending, _slot)
            ) then
                perform jobq_private.notify('jobq_ended', _job_id::text);
            end if;
        end loop;
    end if;
end
$$;

revoke all on function jobq_private.tell_ended from public;

comment on function jobq_private.tell_ended is
'Notifies the clients that wait for these jobs at commit, and nobody when none waits.';

-- Purpose: delete jobs, live or finished, with all that is known of them.
-- Invariant: the caller holds their rows. Jobs that wait for them are looked at, and so are
-- their batches. Raises: nothing.
create or replace function jobq_private.forget_jobs(job_ids uuid[])
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.forget_traces(forget_jobs.job_ids);
    insert into jobq_private.look (about, id)
    select 'child', e.child
    from jobq_private.edge as e
    where e.parent = any(forget_jobs.job_ids) and e.is_open
    union
    select 'batch', j.batch_id
    from jobq_private.job as j
    where j.job_id = any(forget_jobs.job_ids) and j.batch_id is not null;
    delete from jobq_private.edge as e where e.child = any(forget_jobs.job_ids);
    delete from jobq_private.node as n where n.job_id = any(forget_jobs.job_ids);
    delete from jobq_private.event as e where e.job_id = any(forget_jobs.job_ids);

    with live as (
        delete from jobq_private.job as j
        where j.job_id = any(forget_jobs.job_ids)
        returning j.job_id, j.kind, j.idempotency_key
    ),
    ended as (
        delete from jobq_private.job_archive as a
        where a.job_id = any(forget_jobs.job_ids)
        returning a.job_id, a.kind, a.idempotency_key
    )
    delete from jobq_private.idempotency_key as k
    using (select * from live union all select * from ended) as g
    where k.kind = g.kind and k.idempotency_key = g.idempotency_key and k.job_id = g.job_id;

    select jobq_private.tell_ended(forget_jobs.job_ids)
$$;

revoke all on function jobq_private.forget_jobs from public;

comment on function jobq_private.forget_jobs is
'Deletes jobs with all that is known of them.';

-- Purpose: the job that an idempotency key stands for: this one, or an earlier one.
-- Invariant: the key's primary key decides between concurrent callers. A key that is free
-- again passes to the new job, once.
-- Raises: nothing.
create or replace function jobq_private.hold_key(
    kind text, queue text, idempotency_key text, job_id uuid
)
returns uuid
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _holder uuid;
    _since timestamptz;
begin
    loop
        insert into jobq_private.idempotency_key as k (kind, idempotency_key, job_id)
        values (hold_key.kind, hold_key.idempotency_key, hold_key.job_id)
        on conflict on constraint idempotency_key_pkey do nothing;
        if found then
            return hold_key.job_id;
        end if;

        select k.job_id, k.created_at into _holder, _since
        from jobq_private.idempotency_key as k
        where k.kind = hold_key.kind
        and k.idempotency_key = hold_key.idempotency_key;
        if _holder = hold_key.job_id or (found and not jobq_private.is_key_free(
            hold_key.kind, hold_key.queue, _holder, _since
        )) then
            return _holder;
        end if;

        update jobq_private.idempotency_key as k
        set job_id = hold_key.job_id, created_at = now()
        where k.kind = hold_key.kind
        and k.idempotency_key = hold_key.idempotency_key
        and k.job_id = _holder;
        if found then
            return hold_key.job_id;
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.hold_key from public;

comment on function jobq_private.hold_key is
'Returns the job that an idempotency key stands for, this one or an earlier one.';

-- Purpose: hold the idempotency keys of a batch: by ordinal, an id for each of its jobs, and
-- whether the job is to be made under it. Both are null where no job has a key.
-- Invariant: keys are taken in the order of kind and key; those that are new by one
-- statement. Of jobs with one key, the first is made. Raises: nothing.
create or replace function jobq_private.hold_keys(
    jobs jobq_private.new_job[], out ids uuid[], out fresh boolean[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _job jobq_private.new_job;
begin
    if not exists (
        select from unnest(hold_keys.jobs) as j where j.idempotency_key is not null
    ) then
        return;
    end if;
    ids := array(
        select jobq_private.new_id() from unnest(hold_keys.jobs) as j order by j.ordinal
    );
    with given as materialized (
        select
            j.ordinal, j.kind, j.idempotency_key, ids[j.ordinal] as job_id,
            row_number() over (
                partition by j.kind, j.idempotency_key order by j.ordinal
            ) as place
        from unnest(hold_keys.jobs) as j
    ),
    held as (
        insert into jobq_private.idempotency_key (kind, idempotency_key, job_id)
        select g.kind, g.idempotency_key, g.job_id
        from given as g
        where g.idempotency_key is not null and g.place = 1
        order by g.kind, g.idempotency_key
        on conflict on constraint idempotency_key_pkey do nothing
        returning job_id
    )
    select array_agg(
        g.idempotency_key is null or h.job_id is not null order by g.ordinal
    )
    into fresh
    from given as g
    left join held as h on h.job_id = g.job_id;

    for _job in
        select j.* from unnest(hold_keys.jobs) as j
        where not fresh[j.ordinal]
        order by j.kind, j.idempotency_key, j.ordinal
    loop
        fresh[_job.ordinal] := ids[_job.ordinal] = jobq_private.hold_key(
            _job.kind, _job.queue, _job.idempotency_key, ids[_job.ordinal]
        );
    end loop;
end
$$;

revoke all on function jobq_private.hold_keys from public;

comment on function jobq_private.hold_keys is
'Holds the idempotency keys of a batch, and says which jobs are to be made.';

-- Purpose: hold the idempotency keys of finished jobs that go back, given by kind, queue and key;
-- return those jobs whose key stands for another one, which stay.
-- Invariant: keys are taken in the order of kind and key, as by every batch; those that are free by
-- one statement. Of jobs with one key, the first has it. Raises: nothing.
create or replace function jobq_private.hold_old_keys(
    job_ids uuid[], kinds text[], queues text[], keys text[]
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _barred uuid[] := '{}'::uuid[];
    _job record;
begin
    insert into jobq_private.idempotency_key (kind, idempotency_key, job_id)
    select distinct on (g.kind, g.key) g.kind, g.key, g.job_id
    from unnest(job_ids, kinds, keys) as g (job_id, kind, key)
    order by g.kind, g.key, g.job_id
    on conflict on constraint idempotency_key_pkey do nothing;

    for _job in
        select g.*
        from unnest(job_ids, kinds, queues, keys) as g (job_id, kind, queue, key)
        left join jobq_private.idempotency_key as k
            on k.kind = g.kind and k.idempotency_key = g.key
        where k.job_id is distinct from g.job_id
        order by g.kind, g.key, g.job_id
    loop
        if _job.job_id <> jobq_private.hold_key(
            _job.kind, _job.queue, _job.key, _job.job_id
        ) then
            _barred := _barred || _job.job_id;
        end if;
    end loop;
    return _barred;
end
$$;

revoke all on function jobq_private.hold_old_keys from public;

comment on function jobq_private.hold_old_keys is
'Holds the idempotency keys of finished jobs that go back, and returns those that have to stay.';

-- Purpose: the id under which a dedup key makes a job: new_id, or for a throttled one that of the job
-- which it has made within its period; for one that looks at live jobs that of a job which itself
-- looked at none, and so is held by no index.
-- Invariant: the row of the key decides between concurrent callers that throttle. Raises: 22004,
-- 22023, JQ004, JQ005, JQ006, JQ010.
create or replace function jobq_private.hold_throttle(
    job jobq_private.new_job, new_id uuid, is_checked boolean
)
returns uuid
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _settings jobq_private.settings;
    _dedup text;
    _holder uuid;
    _is_free boolean;
begin
    select s.* into _settings from jobq_private.settings_for(job.kind, job.queue) as s;
    _dedup := coalesce(job.dedup, _settings.dedup, 'enqueue');
    if _dedup = 'enqueue' or (_dedup <> 'throttle' and not exists (
        select from jobq_private.job as j
        where j.kind = job.kind and j.dedup_key = job.dedup_key and j.dedup is null
    )) then
        return new_id;
    end if;
    if not is_checked then
        perform jobq_private.check_new_job(job, _settings);
    end if;
    if _dedup <> 'throttle' then
        loop
            select y.job_id, y.created into _holder, _is_free
            from jobq_private.yield_dedup_key(job, new_id) as y;
            exit when not _is_free or not exists (
                select from jobq_private.job as j
                where j.kind = job.kind and j.dedup_key = job.dedup_key
            );
        end loop;
        return _holder;
    end if;
    insert into jobq_private.throttle as t (kind, dedup_key, job_id, until)
    values (job.kind, job.dedup_key, new_id, now() + _settings.dedup_period)
    on conflict on constraint throttle_pkey do update
    set job_id = excluded.job_id, until = excluded.until
    where t.until <= now();
    return (
        select t.job_id from jobq_private.throttle as t
        where t.kind = job.kind and t.dedup_key = job.dedup_key
    );
end
$$;

revoke all on function jobq_private.hold_throttle from public;

comment on function jobq_private.hold_throttle is
'The id under which a throttled dedup key makes a job.';

-- Purpose: check and insert a batch of new jobs; the one way in. Their ordinals are 1 to n.
-- Invariant: all or none. Every batch takes its locks in one order, so that batches cannot
-- deadlock: idempotency keys first, by kind and key, then dedup keys, by kind and key. Only
-- jobs with dedup keys go in one by one.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
create or replace function jobq_private.insert_jobs(jobs jobq_private.new_job[])
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _job jobq_private.new_job;
    _ids uuid[];
    _fresh boolean[];
begin
    if cardinality(insert_jobs.jobs) = 1 then
        _job := insert_jobs.jobs[1];
        return query
        select _job.ordinal, s.job_id, s.created
        from jobq_private.store_job(_job) as s;
        return;
    end if;

    perform jobq_private.check_new_jobs(insert_jobs.jobs);
    select h.ids, h.fresh into _ids, _fresh
    from jobq_private.hold_keys(insert_jobs.jobs) as h;
    return query
    select s.ordinal, s.job_id, true
    from jobq_private.store_jobs(array(
        select j from unnest(insert_jobs.jobs) as j
        where j.dedup_key is null and coalesce(_fresh[j.ordinal], true)
    ), coalesce(_ids, '{}')) as s;
    for _job in
        select j.* from unnest(insert_jobs.jobs) as j
        where j.dedup_key is not null and coalesce(_fresh[j.ordinal], true)
        order by j.kind, j.dedup_key, j.ordinal
    loop
        return query
        select _job.ordinal, s.job_id, s.created
        from jobq_private.store_job(
            _job, coalesce(_ids[_job.ordinal], jobq_private.new_id())
        ) as s;
    end loop;

    if false = any (_fresh) then
        perform pg_logical_emit_message(true, 'jobq', '');
        return query
        select j.ordinal, k.job_id, false
        from unnest(insert_jobs.jobs) as j
        join jobq_private.idempotency_key as k
            on k.kind = j.kind and k.idempotency_key = j.idempotency_key
        where not _fresh[j.ordinal];
    end if;
end
$$;

revoke all on function jobq_private.insert_jobs from public;

comment on function jobq_private.insert_jobs is
'Checks and inserts a batch of new jobs, all or none.';

-- Purpose: whether an idempotency key that stands for a job may pass to another one: the
-- key is past its retention and its job not live, or the job has failed and its kind says
-- that the key may be used again then.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.is_key_free(
    kind text, queue text, job_id uuid, created_at timestamptz
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if created_at < now() - (select g.key_retention from jobq_private.setting as g) then
        return not exists (
            select from jobq_private.job as j where j.job_id = is_key_free.job_id
        );
    end if;
    return jobq_private.has_failed(job_id) and (
        select s.reuse_key_after_failure
        from jobq_private.settings_for(is_key_free.kind, is_key_free.queue) as s
    );
end
$$;

revoke all on function jobq_private.is_key_free from public;

comment on function jobq_private.is_key_free is
'Says whether an idempotency key that stands for a job may pass to another one.';

-- Purpose: whether the transaction that left its mark on a row has ended; next is the one
-- that comes after all that the caller's snapshot knows.
-- Invariant: knows savepoints too, which a snapshot does not list. Of one that has begun
-- since the snapshot it says no. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.is_over(mark xid, next xid8)
returns boolean
language sql
stable
parallel safe
security invoker
as $$
    select case
        when pg_catalog.age(mark) > pg_catalog.age(next::xid)
        then pg_catalog.pg_xact_status(
            (next::text::bigint + pg_catalog.age(next::xid) - pg_catalog.age(mark))
            ::text::xid8
        ) <> 'in progress'
        else false
    end
$$;

revoke all on function jobq_private.is_over from public;

comment on function jobq_private.is_over is
'Whether the transaction that left its mark on a row has ended.';

-- Purpose: a live job that reaches a final state leaves for the archive.
-- Invariant: so `update … set state` is enough, for functions and for psql alike; the
-- foreign key has been checked before, by its name. The WHEN clause is short, since
-- PostgreSQL reads its text again for every statement. Raises: nothing of its own.
create or replace function jobq_private.archive_finished()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.state in ('succeeded', 'dead', 'cancelled') then
        perform jobq_private.archive_jobs(
            array[new.job_id], array[new.attempt], new.state, null, false
        );
    end if;
    return null;
end
$$;

revoke all on function jobq_private.archive_finished from public;

comment on function jobq_private.archive_finished is
'Moves a job that reached a final state into the archive.';

create or replace trigger job_archive
after update on jobq_private.job
for each row
when (new.lease_expires_at is null)
execute function jobq_private.archive_finished();

-- Purpose: record every attempt that ended without success.
-- Invariant: a row for each change out of running by UPDATE, whoever makes it, so the
-- history has no gaps; success leaves by the archive, which is its own record, and
-- settle_failures() records what it does for all of a batch at once: its setting only has this
-- look whether the row is there, so nobody who sets it leaves a gap. The WHEN
-- clause is short, since PostgreSQL reads its text again for every statement.
-- Raises: nothing.
create or replace function jobq_private.record_attempt()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.state = 'succeeded' or (
        current_setting('jobq.notes_attempts', true) = 'on'
        and exists (
            select from jobq_private.attempt as a
            where a.job_id = old.job_id and a.attempt = old.attempt and a.finished_at >= now()
        )
    ) then
        return null;
    end if;
    insert into jobq_private.attempt (
        job_id, attempt, state, started_at, finished_at, worker, error_code, error,
        error_details, endpoint, region
    )
    values (
        old.job_id, old.attempt, new.state, old.claimed_at, clock_timestamp(), old.worker,
        case when new.state in ('retrying', 'dead') then new.last_error_code end,
        case when new.state in ('retrying', 'dead') then new.last_error end,
        case when new.state in ('retrying', 'dead') then new.last_error_details end,
        case when old.delivery_version is not null then old.kind end,
        old.region
    );
    if old.lane_id is not null or old.place is not null then
        perform jobq_private.leave_lane(new);
    end if;
    return null;
end
$$;

revoke all on function jobq_private.record_attempt from public;

comment on function jobq_private.record_attempt is
'Records an attempt that ended without success.';

create or replace trigger job_attempt
after update on jobq_private.job
for each row
when (old.lease_expires_at is not null and new.lease_expires_at is null)
execute function jobq_private.record_attempt();

-- Purpose: refuse a row that claims a past it does not have.
-- Invariant: a new job has no previous state, and is queued or blocked;
-- only what redrives brings one back, from dead or cancelled: a trigger, or redrive_jobs().
-- The WHEN clause keeps the function away from every ordinary enqueue, and is short, since
-- PostgreSQL reads its text again for every statement. Raises: JQ002.
create or replace function jobq_private.refuse_forged_birth()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.state in ('queued', 'blocked')
        and new.attempt = new.uncounted
        and new.max_attempts > 0
        and num_nonnulls(new.claimed_at, new.lease_expires_at, new.worker) = 0
        and (new.concurrency_key is null or new.lane_id is not null)
        and (
            (new.previous_state is null and new.attempt = 0)
            or (
                new.previous_state in ('dead', 'cancelled')
                and (
                    pg_trigger_depth() > 1 or current_setting('jobq.redrives', true) = 'on'
                )
            )
        )
    then
        return new;
    end if;
    perform jobq_private.raise_error('ILLEGAL_STATE', format(
        'job_id %s: a job is born queued or blocked, in the lane of its key, with no previous state, attempt or lease',
        new.job_id
    ));
    return null;
end
$$;

revoke all on function jobq_private.refuse_forged_birth from public;

comment on function jobq_private.refuse_forged_birth is
'Refuses an inserted job that claims a past.';

create or replace trigger job_birth
before insert on jobq_private.job
for each row
when (
    new.state <> 'queued'
    or new.attempt | new.uncounted <> 0
    or new.max_attempts < 1
    or num_nonnulls(new.previous_state, new.claimed_at, new.lease_expires_at, new.worker) > 0
    or (new.concurrency_key is not null and new.lane_id is null)
)
execute function jobq_private.refuse_forged_birth();

-- Purpose: refuse a change of what identifies a job, and of the payload of one that has run.
-- Invariant: whoever writes, the payload changes only while no attempt has begun. Fires only for an UPDATE that names one of these columns, so no hot
-- statement pays for it. Raises: JQ002.
create or replace function jobq_private.refuse_change()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.raise_error('IMMUTABLE', format(
        'job_id %s: id, kind, keys, schedule, batch, delivery_version and created_at, and payload once it has run',
        old.job_id
    ));
    return null;
end
$$;

revoke all on function jobq_private.refuse_change from public;

comment on function jobq_private.refuse_change is
'Refuses a change of what identifies a job.';

create or replace trigger job_identity
before update of
job_id, kind, payload, created_at, idempotency_key, dedup_key, dedup, schedule_id, slot_at,
delivery_version, concurrency_key, lane_id, queue, batch_id
on jobq_private.job
for each row
when (
    (old.job_id, old.kind, old.created_at, old.idempotency_key,
        old.dedup_key, old.dedup, old.schedule_id, old.slot_at,
        old.delivery_version, old.concurrency_key, old.batch_id)
    is distinct from
    (new.job_id, new.kind, new.created_at, new.idempotency_key,
        new.dedup_key, new.dedup, new.schedule_id, new.slot_at,
        new.delivery_version, new.concurrency_key, new.batch_id)
    or (new.payload is distinct from old.payload
        and (old.attempt > 0 or old.state <> 'queued' or new.state <> 'queued'))
    or (old.concurrency_key is not null
        and (new.lane_id is null or (new.queue = old.queue) <> (new.lane_id = old.lane_id)))
    or (old.place is not null and new.queue <> old.queue)
)
execute function jobq_private.refuse_change();

-- Purpose: an insert into the view enqueues.
-- Invariant: runs with the caller's rights, so it needs EXECUTE on enqueue(). What the
-- database decides (state, attempt, lease, id and more) cannot be given.
-- Raises: 22004, 22023, JQ002, JQ004, JQ005, JQ006, JQ010.
-- Never: JOB_NOT_FOUND, BATCH_NOT_FOUND.
create or replace function jobq_private.enqueue_from_view()
returns trigger
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _other jobq.job := new;
begin
    _other.kind := null;
    _other.payload := null;
    _other.queue := null;
    _other.run_at := null;
    _other.priority := null;
    _other.max_attempts := null;
    _other.timeout := null;
    _other.idempotency_key := null;
    _other.dedup_key := null;
    _other.metadata := null;
    _other.concurrency_key := null;
    _other.expires_at := null;
    _other.state := nullif(new.state, 'queued');
    if not _other is null then
        raise exception using
            errcode = 'JQ002',
            message = 'a job is born queued, with an id of the database''s making',
            detail = format('given: %s', jsonb_strip_nulls(to_jsonb(_other))),
            hint = 'insert kind, payload and options only',
            constraint = 'ILLEGAL_STATE';
    end if;
    new.job_id := jobq.enqueue(
        new.kind, new.payload, new.queue, new.run_at, new.priority, new.max_attempts,
        new.timeout, new.idempotency_key, new.dedup_key, null, new.metadata,
        new.concurrency_key, new.expires_at
    );
    new := jobq.get_job(new.job_id);
    return new;
end
$$;

revoke all on function jobq_private.enqueue_from_view from public;

comment on function jobq_private.enqueue_from_view is
'Enqueues what is inserted into jobq.job.';

create or replace trigger job_insert
instead of insert on jobq.job
for each row execute function jobq_private.enqueue_from_view();

-- Purpose: make the rows of checked new jobs: what each leaves open is filled in from the
-- settings of its kind and queue.
-- Invariant: it is inlined into the statement that stores the rows, so it has no settings
-- of its own; the settings are read once for each kind and queue. ids has the id of each
-- job, in the order of jobs. Raises: nothing.
create or replace function jobq_private.job_rows(jobs jobq_private.new_job[], ids uuid[])
returns table (
    job_id uuid, kind text, payload jsonb, queue text, run_at timestamptz,
    priority integer, max_attempts integer, timeout interval, lease interval,
    idempotency_key text, dedup_key text, dedup jobq_private.dedup, metadata jsonb,
    schedule_id uuid, slot_at timestamptz, delivery_version integer, concurrency_key text,
    lane_id uuid, expires_at timestamptz, keep interval[], state text, batch_id uuid,
    is_awaited boolean
)
language sql
stable
parallel unsafe
security invoker
as $$
    with policy as materialized (
        select d.kind as of_kind, d.queue as of_queue, s.*
        from (select distinct j.kind, coalesce(j.queue, '') from unnest(jobs) as j)
            as d (kind, queue)
        cross join lateral
            jobq_private.settings_for(d.kind, nullif(d.queue, '')) as s
    )
    select
        ids[j.ordinality], j.kind, coalesce(j.payload, '{}'), p.queue, coalesce(j.run_at, now()),
        coalesce(j.priority, p.priority), coalesce(j.max_attempts, p.max_attempts),
        coalesce(j.timeout, p.timeout), p.lease, j.idempotency_key, j.dedup_key,
        case when j.dedup_key is not null then j.dedup end, coalesce(j.metadata, '{}'),
        j.schedule_id, j.slot_at, p.delivery_version, k.concurrency_key,
        jobq_private.lane_of(p.queue, k.concurrency_key, j.kind, p.is_limited), j.expires_at,
        p.keep,
        case when j.after is null and j.callback_of is null then 'queued' else 'blocked' end,
        j.batch_id, coalesce(j.is_awaited, false)
    from unnest(jobs) with ordinality as j
    join policy as p on p.of_kind = j.kind and p.of_queue = coalesce(j.queue, '')
    cross join lateral (
        select coalesce(j.concurrency_key, j.payload #>> p.concurrency_key)
    ) as k (concurrency_key)
$$;

revoke all on function jobq_private.job_rows from public;

comment on function jobq_private.job_rows is
'Makes the rows of checked new jobs, with what the settings of their kinds and queues say.';

-- Purpose: derive everything that follows from a change of state, whoever makes it.
-- Invariant: previous_state, its lane and the lease are stamped here and nowhere else, and
-- the delivery to a paused endpoint does not begin, which park_delivery() puts aside; a
-- lease moves only with a change of state or a heartbeat, and never past claimed_at +
-- timeout + lease, so that a frozen worker cannot renew for ever. A claim has looked at the
-- limits, and says so by a place of zero or below; for whoever starts a job otherwise this
-- looks. A job that has expired dies instead of starting, whoever claims it. None waits whose
-- attempts are spent: it would break each claim that tries. Raises: JQ002, JQ011.
create or replace function jobq_private.stamp_transition()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _is_by_hand boolean := false;
begin
    if new.previous_state is distinct from old.previous_state
        or new.attempt <> old.attempt
        or new.uncounted <> old.uncounted
        or new.lease_expires_at is distinct from old.lease_expires_at
        or new.claimed_at is distinct from old.claimed_at
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: previous_state, attempt and lease follow from the state', old.job_id
        ));
    end if;

    if new.state = 'running' and old.expires_at <= clock_timestamp() then
        new.state := 'dead';
        new.last_error_code := 'EXPIRED';
        new.last_error := 'it could not start before ' || old.expires_at;
        new.last_error_details := null;
    end if;

    if new.state = 'running' and old.state <> 'running'
        and old.delivery_version is not null
        and jobq_private.park_delivery(old.job_id, old.kind, old.run_at)
    then
        return null;
    elsif new.state <> old.state then
        new.previous_state := old.state;
        new.lane := (pg_backend_pid() & 1023)::smallint;
        new.heartbeat_at := null;
        new.lease_expires_at := null;
        if new.state <> 'running' then
            new.place := null;
            new.waits_since := clock_timestamp();
        elsif new.place <= 0 then
            new.place := nullif(-new.place, 0);
        else
            new.place := jobq_private.take_place(new);
            _is_by_hand := true;
        end if;
        if new.state = 'running' then
            new.attempt := old.attempt + 1;
            new.claimed_at := clock_timestamp();
            new.worker := coalesce(new.worker, session_user);
            new.lease_expires_at := new.claimed_at + old.lease;
            if _is_by_hand then
                perform jobq_private.charge_job(new);
            end if;
        elsif new.state in ('queued', 'retrying') then
            new.claimed_at := null;
            new.worker := null;
            new.uncounted := old.uncounted
                + (new.state = 'queued' and old.state = 'running')::integer;
        end if;
    elsif new.place is distinct from old.place and old.place is not null then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: the place follows from the state', old.job_id
        ));
    elsif new.heartbeat_at is distinct from old.heartbeat_at and new.state = 'running' then
        new.heartbeat_at := clock_timestamp();
        new.lease_expires_at := greatest(
            old.lease_expires_at,
            least(
                new.heartbeat_at + old.lease, old.claimed_at + old.timeout + old.lease
            )
        );
    elsif new.worker is distinct from old.worker
        or new.heartbeat_at is distinct from old.heartbeat_at
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: worker and heartbeat follow from the state', old.job_id
        ));
    end if;
    if new.claimed_at is null and new.attempt - new.uncounted >= new.max_attempts then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: %s of %s attempts are spent: it cannot wait for another',
            old.job_id, new.attempt - new.uncounted, new.max_attempts
        ));
    end if;
    return new;
end
$$;

revoke all on function jobq_private.stamp_transition from public;

comment on function jobq_private.stamp_transition is
'Stamps the previous state, the attempt and the lease of a job that changes its state.';

create or replace trigger job_transition
before update on jobq_private.job
for each row execute function jobq_private.stamp_transition();

-- Purpose: an update of state in the view performs the transition.
-- Invariant: only the state, with the worker, run_at, result and error that belong to the
-- change, can be given; the tables' own triggers and foreign key decide whether it is
-- legal, as for every other writer. A row that somebody else has changed meanwhile counts
-- as not found.
-- Raises: JQ002, JQ003, JQ004, JQ005, JQ006, 23503.
-- Never: NULL_ARGUMENT, JOB_NOT_FOUND.
create or replace function jobq_private.update_from_view()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _kept jobq.job := new;
begin
    _kept.state := old.state;
    _kept.worker := old.worker;
    _kept.run_at := old.run_at;
    _kept.result := old.result;
    _kept.last_error := old.last_error;
    _kept.last_error_code := old.last_error_code;
    _kept.cancel_reason := old.cancel_reason;
    if new.state = old.state or _kept is distinct from old then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: an update of jobq.job changes the state', old.job_id
        ));
    end if;

    if old.finished_at is not null then
        update jobq_private.job_archive as a
        set state = new.state
        where a.job_id = old.job_id and a.finished_at = old.finished_at;
    elsif new.state = 'succeeded' and old.state = 'running' then
        perform jobq.complete(old.job_id, old.attempt, new.result);
    else
        update jobq_private.job as j
        set
            state = new.state, worker = new.worker, run_at = new.run_at,
            last_error = jobq_private.redacted(new.last_error),
            last_error_code = new.last_error_code, last_error_details = null,
            cancel_reason = new.cancel_reason
        where j.job_id = old.job_id and j.state = old.state and j.attempt = old.attempt;
    end if;
    if not found then
        if old.finished_at is not null then
            perform jobq_private.refuse_redrive(old);
        end if;
        return null;
    elsif old.finished_at is null then
        perform jobq_private.record_audit(
            'update to ' || new.state, old.job_id::text, new.cancel_reason
        );
    end if;
    return new;
end
$$;

revoke all on function jobq_private.update_from_view from public;

comment on function jobq_private.update_from_view is
'Performs the transition that an update of jobq.job asks for.';

create or replace trigger job_update
instead of update on jobq.job
for each row execute function jobq_private.update_from_view();

-- Purpose: how many jobs of a queue are claimed before the one with this place.
-- Invariant: the order of claim(); two ranges of job_ready_idx, each of which counts 10,001 at
-- most. The job itself is due, so nothing before it need be compared with now: a scan that has
-- two ends on run_at reads on to the later one. Raises: nothing.
create or replace function jobq_private.jobs_ahead(
    queue text, priority integer, run_at timestamptz, job_id uuid
)
returns bigint
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select count(*)
    from (
        (
            select from jobq_private.job as j
            where j.queue = jobs_ahead.queue
            and j.state in ('queued', 'retrying')
            and j.lane_id is null
            and j.priority = jobs_ahead.priority
            and (j.run_at, j.job_id) < (jobs_ahead.run_at, jobs_ahead.job_id)
            limit 10001
        )
        union all
        (
            select from jobq_private.job as j
            where j.queue = jobs_ahead.queue
            and j.state in ('queued', 'retrying')
            and j.lane_id is null
            and j.priority > jobs_ahead.priority
            and j.run_at <= now()
            limit 10001
        )
        limit 10001
    ) as ahead
$$;

revoke all on function jobq_private.jobs_ahead from public;

comment on function jobq_private.jobs_ahead is
'Counts the jobs of a queue that are claimed before the one with this place.';

-- Purpose: how far down the ids a search of max_looked jobs reaches, the newest first, of those
-- made before one: the id of the last it looks at; null where there are fewer.
-- Invariant: counts what a search for these states has to look at, by descents of indexes that
-- are in the order of ids, whatever the statistics say; what runs, workers keep few, and its own
-- index finds it. Raises: nothing.
create or replace function jobq_private.look_floor(
    states text[], oldest uuid, before uuid, max_looked integer
)
returns uuid
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashagg = off
as $$
    select l.job_id
    from (
        (
            select j.job_id
            from jobq_private.job as j
            where (states is null or states && '{blocked,queued,retrying}')
            and j.job_id < before and j.job_id >= oldest
            order by j.job_id desc
            limit max_looked
        )
        union all
        (
            select r.job_id
            from (
                select j.job_id
                from jobq_private.job as j
                where j.state = 'running'
                and 'running' = any(states) and not states && '{blocked,queued,retrying}'
                offset 0
            ) as r
            where r.job_id < before and r.job_id >= oldest
            order by r.job_id desc
            limit max_looked
        )
        union all
        (
            select a.job_id
            from jobq_private.job_archive as a
            where (states is null or 'succeeded' = any(states))
            and a.job_id < before and a.job_id >= oldest
            order by a.job_id desc
            limit max_looked
        )
        union all
        (
            select r.job_id
            from unnest('{dead,cancelled}'::text[]) as s (state)
            cross join lateral (
                select a.job_id
                from jobq_private.job_archive as a
                where s.state = any(states) and 'succeeded' <> all(states)
                and a.state = s.state and a.state <> 'succeeded'
                and a.job_id < before and a.job_id >= oldest
                order by a.job_id desc
                limit max_looked
            ) as r
        )
    ) as l
    order by l.job_id desc
    offset max_looked - 1
    limit 1
$$;

revoke all on function jobq_private.look_floor from public;

comment on function jobq_private.look_floor is
'How far down the ids a search of so many jobs reaches.';

-- Purpose: make a history table ready for one day (UTC).
-- Invariant: rows that came to the default partition meanwhile are moved. The parent is
-- locked first, so that a completion waits there and not with its row on the way to the
-- default partition, where it would fail. Other partitions are not locked, so that a
-- vacuum of theirs is not in the way. Waits at most 100 ms for a lock, for completions
-- go first. Raises: 55P03 when the lock is not had.
create or replace function jobq_private.make_partition(relation text, day date)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
set timezone = 'UTC'
as $$
declare
    _column constant text :=
        case relation when 'job_log' then 'logged_at' else 'finished_at' end;
    _name constant text := format('%s_%s', relation, to_char(day, 'YYYYMMDD'));
begin
    if to_regclass('jobq_private.' || _name) is not null then
        return false;
    end if;
    execute format(
        'lock table only jobq_private.%I in share row exclusive mode', relation
    );
    execute format(
        'lock table jobq_private.%I in access exclusive mode', relation || '_default'
    );
    execute format(
        'create table jobq_private.%I (like jobq_private.%I'
        ' including defaults including constraints)', _name, relation
    );
    execute format(
        'with moved as (delete from jobq_private.%1$I as d'
        ' where d.%2$I >= %3$L and d.%2$I < %4$L returning d.*)'
        ' insert into jobq_private.%5$I select m.* from moved as m',
        relation || '_default', _column, day, day + 1, _name
    );
    execute format(
        'alter table jobq_private.%I attach partition jobq_private.%I'
        ' for values from (%L) to (%L)', relation, _name, day, day + 1
    );
    return true;
end
$$;

revoke all on function jobq_private.make_partition from public;

comment on function jobq_private.make_partition is
'Makes a history table ready for one day; true when it was not.';

-- Purpose: have partitions for today and the week ahead.
-- Invariant: what a missing partition would hold goes to the default partition, and from
-- there to one for its day, also when that has passed; so nothing outlives its retention.
-- A lock that is not had at once is tried again at the next call. Returns how many were
-- made. Raises: nothing.
create or replace function jobq_private.make_partitions()
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
    _relation text;
    _day date;
    _made bigint := 0;
begin
    foreach _relation in array array['job_archive', 'attempt', 'job_log'] loop
        for _day in execute format(
            'select %L::date + n from generate_series(0, 7) as n'
            ' union select d.%I::date from jobq_private.%I as d',
            now()::date,
            case _relation when 'job_log' then 'logged_at' else 'finished_at' end,
            _relation || '_default'
        ) loop
            _made := _made + jobq_private.make_partition(_relation, _day)::integer;
        end loop;
    end loop;
    return _made;
exception
    when lock_not_available then
        raise notice using
            message = 'a history table is in use; its partitions are left to the next call';
        return 0;
end
$$;

revoke all on function jobq_private.make_partitions from public;

comment on function jobq_private.make_partitions is
'Makes partitions of the history ahead of time.';

-- Purpose: a UUID of version 7, ordered by time, also within a batch of one session, whose tenth
-- byte is the number of this shard.
-- Invariant: PostgreSQL 18 has it; below, 12 bits of microseconds follow the milliseconds
-- (RFC 9562, section 6.2, method 3). 54 random bits are left. No SET clause, so that it is
-- inlined, and the number is a constant in it. Raises: nothing.
-- creates: function jobq_private.new_id
do $do$
begin
    if current_setting('server_version_num')::integer >= 180000 then
        create or replace function jobq_private.new_id()
        returns uuid
        language sql
        volatile
        parallel safe
        security invoker
        as $$
        select pg_catalog.encode(
            pg_catalog.set_byte(
                pg_catalog.uuid_send(pg_catalog.uuidv7()), 9, jobq_private.own_shard()
            ),
            'hex'
        )::uuid
        $$;
    else
        create or replace function jobq_private.new_id()
        returns uuid
        language sql
        volatile
        parallel safe
        security invoker
        as $$
        select pg_catalog.encode(
            pg_catalog.substring(pg_catalog.int8send(t.us / 1000), 3)
            || pg_catalog.substring(
                pg_catalog.int4send((28672 + (t.us % 1000) * 4096 / 1000)::integer), 3
            )
            || pg_catalog.set_byte(
                pg_catalog.substring(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), 9),
                1, jobq_private.own_shard()
            ),
            'hex'
        )::uuid
        from (
            select (extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint as us
        ) as t
        $$;
    end if;
end
$do$;

revoke all on function jobq_private.new_id() from public;

comment on function jobq_private.new_id() is 'A new UUID of version 7.';

-- Purpose: forget finished jobs that their kind keeps for less than the global retention.
-- Invariant: a bounded number at a call, the longest overdue first, found by an index of
-- such jobs alone; not while a job that waited for one is live, or its batch; what somebody holds is left to the next call. Idempotency keys stay for
-- their own retention. Returns how many went. Raises: nothing.
create or replace function jobq_private.prune_jobs(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _gone uuid[];
begin
    with due as materialized (
        select a.job_id, a.finished_at
        from jobq_private.job_archive as a
        where a.prune_at < now()
        and not jobq_private.is_needed(a.job_id, a.is_awaited, a.batch_id, now())
        order by a.prune_at
        limit prune_jobs.max_rows
        for update skip locked
    ),
    gone as (
        delete from jobq_private.job_archive as a
        using due as d
        where a.job_id = d.job_id and a.finished_at = d.finished_at
        returning a.job_id
    )
    select array_agg(g.job_id) into _gone from gone as g;
    if _gone is not null then
        perform jobq_private.forget_traces(_gone);
    end if;
    return coalesce(cardinality(_gone), 0);
end
$$;

revoke all on function jobq_private.prune_jobs from public;

comment on function jobq_private.prune_jobs is
'Forgets finished jobs that their kind keeps for less than the global retention.';

-- Purpose: a job that has not begun takes the payload of a later call, and waits on from then: by
-- dedup_period or until the call's run_at, but no longer in all than dedup_max_wait.
-- Invariant: a job that has begun is left as it is. Raises: nothing.
create or replace function jobq_private.put_off(job_id uuid, job jobq_private.new_job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _lane record;
begin
    update jobq_private.job as j
    set
        payload = coalesce(job.payload, '{}'),
        run_at = least(
            coalesce(job.run_at, now() + s.dedup_period), j.created_at + s.dedup_max_wait
        )
    from jobq_private.settings_for(job.kind, job.queue) as s
    where j.job_id = put_off.job_id and j.state = 'queued' and j.attempt = 0
    returning j.lane_id, j.queue, j.concurrency_key, j.priority, j.run_at into _lane;
    if _lane.lane_id is not null then
        perform jobq_private.call_lane(
            _lane.lane_id, _lane.queue, _lane.concurrency_key, _lane.priority, _lane.run_at
        );
    end if;
    if _lane.run_at < now() + interval '60 s' then
        perform jobq_private.wake(array[_lane.queue]);
    end if;
end
$$;

revoke all on function jobq_private.put_off from public;

comment on function jobq_private.put_off is
'Has a job that has not begun take the payload of a later call, and wait on.';

-- Purpose: read new jobs that a caller gives as a JSON array.
-- Invariant: an unknown member is refused, so that no misspelt option is passed over. Planned
-- once: a plan made for the batch as a constant copies it several times. Reads nothing.
-- Raises: 22004, 22023.
create or replace function jobq_private.read_jobs(jobs jsonb, known text[])
returns jobq_private.new_job[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _problem text;
    _jobs jobq_private.new_job[];
begin
    if read_jobs.jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'jobs');
    elsif jsonb_typeof(read_jobs.jobs) <> 'array' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'jobs must be a JSON array');
    end if;

    select format('job %s: must be an object with members among %s', e.n, read_jobs.known)
    into _problem
    from jsonb_array_elements(read_jobs.jobs) with ordinality as e (job, n)
    where jsonb_typeof(e.job) <> 'object' or e.job - read_jobs.known <> '{}'
    limit 1;
    if found then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;

    select array_agg(jsonb_populate_record(
        row(
            e.n, null, null, null, null, null, null, null, null, null, null, null, null, null,
            null, null, null, null, null, null, null
        )::jobq_private.new_job, e.job
    ) order by e.n) into _jobs
    from jsonb_array_elements(read_jobs.jobs) with ordinality as e (job, n);
    return coalesce(_jobs, '{}');
end
$$;

revoke all on function jobq_private.read_jobs from public;

comment on function jobq_private.read_jobs is
'Reads new jobs that a caller gives as a JSON array.';

-- Purpose: put dead jobs back among the live ones that the caller has locked, but for those that
-- are barred; one whose dedup key stands for another job stays.
-- Invariant: a statement for each step, whatever their number. What archive_redrive says of one
-- job holds here for each; the setting tells job_birth that they have the past they claim. Rows are
-- found by an array of ids, in the partitions of their days, whatever the statistics say.
-- Raises: nothing.
create or replace function jobq_private.redrive_jobs(
    job_ids uuid[], finished_ats timestamptz[], barred uuid[]
)
returns setof uuid
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
declare
    _of_parents constant text[] := '{PARENT_FAILED,PARENT_GONE}'::text[];
    _first constant timestamptz := (select min(f) from unnest(finished_ats) as f);
    _last constant timestamptz := (select max(f) from unnest(finished_ats) as f);
    _back uuid[];
    _queues text[];
    _has_lanes boolean;
begin
    perform set_config('jobq.redrives', 'on', true);
    with back as (
        insert into jobq_private.job (
            job_id, created_at, run_at, slot_at, lease, timeout, schedule_id, attempt,
            uncounted, max_attempts, priority, state, previous_state, region, queue, kind,
            idempotency_key, dedup_key, dedup, last_error_code, last_error, last_error_details,
            metadata, payload, delivery_version, lane_id, concurrency_key, keep, is_awaited,
            batch_id, waits_since
        )
        select
            a.job_id, a.created_at, now(), a.slot_at, a.lease, a.timeout, a.schedule_id,
            a.attempt, a.attempt, a.max_attempts, a.priority, 'queued', a.state, a.region,
            a.queue, a.kind, a.idempotency_key, a.dedup_key, a.dedup,
            case when a.last_error_code <> all(_of_parents) then a.last_error_code end,
            case when a.last_error_code <> all(_of_parents) then a.last_error end,
            a.last_error_details, a.metadata, a.payload, a.delivery_version, a.lane_id,
            a.concurrency_key, a.keep, true, a.batch_id, clock_timestamp()
        from unnest(redrive_jobs.job_ids, redrive_jobs.finished_ats) as c (job_id, finished_at)
        join jobq_private.job_archive as a
            on a.job_id = any(redrive_jobs.job_ids) and a.job_id = c.job_id
            and a.finished_at = c.finished_at and a.finished_at between _first and _last
        where a.state = 'dead' and a.job_id not in (select b from unnest(redrive_jobs.barred) as b)
        order by a.kind, a.dedup_key, a.job_id
        on conflict (kind, dedup_key, (case when dedup is null then job_id end))
        where dedup_key is not null do nothing
        returning job_id, queue, lane_id
    )
    select
        array_agg(b.job_id), array_agg(distinct b.queue order by b.queue),
        count(b.lane_id) > 0
    into _back, _queues, _has_lanes
    from back as b;
    perform set_config('jobq.redrives', '', true);
    if _back is null then
        return;
    end if;

    delete from jobq_private.job_archive as a
    using unnest(redrive_jobs.job_ids, redrive_jobs.finished_ats) as c (job_id, finished_at)
    where a.job_id = any(redrive_jobs.job_ids) and a.job_id = c.job_id
    and a.finished_at = c.finished_at and a.finished_at between _first and _last
    and a.job_id in (select b from unnest(_back) as b);
    if _has_lanes then
        update jobq_private.gate as g
        set held_until = '-infinity', hold_reason = null
        from jobq_private.job as j
        where j.job_id = any(_back)
        and g.gate_id = j.lane_id
        and g.head_job_id = j.job_id
        and g.held_until = 'infinity';
        perform jobq_private.call_lanes(_back);
    end if;
    insert into jobq_private.audit (action, subject)
    select 'redrive', b.job_id::text from unnest(_back) as b (job_id);
    perform jobq_private.wake(_queues);
    return query select b.job_id from unnest(_back) as b (job_id);
end
$$;

revoke all on function jobq_private.redrive_jobs from public;

comment on function jobq_private.redrive_jobs is
'Puts dead jobs that the caller has locked back among the live ones.';

-- Purpose: say which job holds a key of a finished job that was not redriven.
-- Invariant: reads only; returns where none does, as when somebody else has redriven it.
-- Raises: JQ004.
create or replace function jobq_private.refuse_redrive(job jobq.job)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _holder uuid;
begin
    select k.job_id into _holder
    from jobq_private.idempotency_key as k
    where k.kind = job.kind
    and k.idempotency_key = job.idempotency_key
    and k.job_id <> job.job_id;
    if found then
        perform jobq_private.raise_error('IDEMPOTENCY_CONFLICT', format(
            'held by job_id %s: kind %s, idempotency_key %s', _holder, job.kind,
            job.idempotency_key
        ));
    end if;
    select j.job_id into _holder
    from jobq_private.job as j
    where j.kind = job.kind
    and j.dedup_key = job.dedup_key
    and j.dedup is not null
    and j.job_id <> job.job_id;
    if found then
        perform jobq_private.raise_error('DEDUP_CONFLICT', format(
            'held by job_id %s: kind %s, dedup_key %s', _holder, job.kind, job.dedup_key
        ));
    end if;
end
$$;

revoke all on function jobq_private.refuse_redrive from public;

comment on function jobq_private.refuse_redrive is
'Raises which job holds a key of a finished job that was not redriven.';

-- Purpose: jobs that fit a filter, the newest first. When it has looked at 100,000 without finding
-- max_jobs, a last row has nothing but a job_id, which `before` takes to go on from there.
-- Invariant: looks at a thousand first, so that a page that fills costs little, and never at
-- more than that, so that a filter which nothing fits costs what it may. Raises: nothing.
create or replace function jobq_private.search_jobs(
    states text[], kind text, queue text, metadata jsonb, idempotency_key text, trigger text,
    oldest uuid, before uuid, max_jobs integer
)
returns setof jobq.job
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _most constant integer := 100000;
    _is_ended constant boolean := coalesce(states <@ '{succeeded,dead,cancelled}', false);
    _until uuid := search_jobs.before;
    _looked integer := 0;
    _part integer := 1000;
    _left integer := search_jobs.max_jobs;
    _floor uuid;
    _found integer;
    _mark jobq.job;
begin
    while _looked < _most loop
        _floor := jobq_private.look_floor(search_jobs.states, oldest, _until, _part);
        return query
        select j.*
        from jobq.job as j
        where j.job_id < _until and j.job_id >= coalesce(_floor, oldest)
        and (search_jobs.states is null or j.state = any(search_jobs.states))
        and (j.finished_at is not null or not _is_ended)
        and (search_jobs.kind is null or j.kind = search_jobs.kind)
        and (search_jobs.queue is null or j.queue = search_jobs.queue)
        and (search_jobs.metadata is null or j.metadata @> search_jobs.metadata)
        and (
            search_jobs.idempotency_key is null
            or j.idempotency_key = search_jobs.idempotency_key
        )
        and (
            search_jobs.trigger is null
            or jobq_private.job_trigger(j) = search_jobs.trigger
        )
        order by j.job_id desc
        limit _left;
        get diagnostics _found = row_count;
        _left := _left - _found;
        if _left = 0 or _floor is null then
            return;
        end if;
        _until := _floor;
        _looked := _looked + _part;
        _part := least(10 * _part, _most - _looked);
    end loop;
    _mark.job_id := _floor;
    return next _mark;
end
$$;

revoke all on function jobq_private.search_jobs from public;

comment on function jobq_private.search_jobs is
'Jobs that fit a filter, and where to go on when too many were looked at.';

-- Purpose: an instant before which no end can be added to the archive any more.
-- Invariant: who ends jobs locks the archive (ROW EXCLUSIVE) before it reads the clock, and
-- lets go when what it did can be seen (see archive_jobs). So once those are gone that held
-- the lock after the clock was read here, all ends before that are seen by a new snapshot.
-- Null when they are not gone within the patience, or the caller is one of them. Raises: nothing.
create or replace function jobq_private.settled_at(patience interval)
returns timestamptz
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _at constant timestamptz := clock_timestamp();
    _archive constant oid := 'jobq_private.job_archive'::regclass;
    _database constant oid := (
        select d.oid from pg_database as d where d.datname = current_database()
    );
    _ending text[];
begin
    loop
        _ending := array(
            select l.virtualtransaction
            from pg_locks as l
            where l.locktype = 'relation'
            and l.database = _database
            and l.relation = _archive
            and l.mode = 'RowExclusiveLock'
            and l.granted
            and (_ending is null or l.virtualtransaction = any(_ending))
        );
        if _ending = '{}' then
            return _at;
        elsif clock_timestamp() > _at + patience then
            return null;
        end if;
        perform pg_sleep(0.002);
    end loop;
end
$$;

revoke all on function jobq_private.settled_at from public;

comment on function jobq_private.settled_at is
'Returns an instant before which no job''s end can be added any more, or null.';

-- Purpose: check and insert one job, or find the job that holds its idempotency or dedup
-- key already.
-- Invariant: unique indexes alone decide between concurrent callers; each look follows a
-- lost insert with a new snapshot. Running jobs are never replaced. The slot of a schedule
-- was checked when that was declared, and its key is not held: tick() fires each slot once.
-- held is the id under which a batch, checked as a whole, holds the job's idempotency key.
-- Who finds a job writes, if only an empty message: so the commit waits for the disk and
-- the standby as that of the job must have, and a repeated call is not answered with what
-- a failover takes back. A small job without options of its own, of a kind and queue
-- without limits, goes in by one statement. Raises: 22004, 22023, JQ001, JQ002, JQ004,
-- JQ005, JQ006, JQ010.
create or replace function jobq_private.store_job(
    job jobq_private.new_job, held uuid default null, out job_id uuid, out created boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _new constant uuid := coalesce(held, jobq_private.new_id());
    _is_checked boolean := held is not null or job.schedule_id is not null;
    _queue text;
    _lane_id uuid;
    _key text;
    _priority integer;
    _run_at timestamptz;
    _tries integer := 0;
begin
    job_id := _new;
    created := true;
    if job.idempotency_key is not null and not _is_checked then
        select jobq_private.check_new_job(job, s) into _is_checked
        from jobq_private.settings_for(job.kind, job.queue) as s;
        job_id := jobq_private.hold_key(job.kind, job.queue, job.idempotency_key, _new);
        created := job_id = _new;
    end if;

    if job.dedup_key is not null and created then
        job_id := jobq_private.hold_throttle(job, _new, _is_checked);
        created := job_id = _new;
    end if;

    while created loop
        insert into jobq_private.job as j (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            idempotency_key, dedup_key, dedup, metadata, schedule_id, slot_at,
            delivery_version,
            concurrency_key, lane_id, expires_at, keep, state, batch_id
        )
        select
            _new, job.kind, coalesce(job.payload, '{}'), s.queue,
            coalesce(job.run_at, case
                when job.dedup_key is not null
                    and coalesce(job.dedup, s.dedup) = 'debounce'
                then now() + s.dedup_period
            end, now()), least(greatest(coalesce(job.priority, s.priority), -32768), 32767),
            coalesce(job.max_attempts, s.max_attempts), coalesce(job.timeout, s.timeout),
            s.lease, job.idempotency_key, job.dedup_key,
            case
                when job.dedup_key is not null
                then nullif(nullif(coalesce(job.dedup, s.dedup), 'enqueue'), 'throttle')
            end,
            coalesce(job.metadata, '{}'), job.schedule_id, job.slot_at,
            s.delivery_version,
            k.concurrency_key,
            jobq_private.lane_of(s.queue, k.concurrency_key, job.kind, s.is_limited),
            job.expires_at, s.keep,
            case
                when job.after is null and job.callback_of is null then 'queued'
                else 'blocked'
            end,
            job.batch_id
        from jobq_private.settings_for(job.kind, job.queue) as s
        cross join lateral (
            select coalesce(job.concurrency_key, job.payload #>> s.concurrency_key)
        ) as k (concurrency_key)
        where case
            when _is_checked
            then job.schedule_id is not null
                or num_nonnulls(s.payload_schema, s.json_schema) = 0
                or jobq_private.check_payload_schemas(array[job])
            when num_nonnulls(
                job.run_at, job.priority, job.max_attempts, job.timeout, job.dedup_key,
                job.dedup, job.metadata, job.concurrency_key, job.expires_at,
                s.payload_schema, s.json_schema,
                s.max_depth, s.concurrency_key, job.after, job.after_failure, job.batch_id,
                job.callback_of
            ) = 0
            and length(job.kind) between 1 and 128
            and length(s.queue) between 1 and 128
            and octet_length(job.payload::text) <= least(308, 2 * s.max_payload_depth)
            then true
            else jobq_private.check_new_job(job, s, true)
        end
        on conflict (kind, dedup_key, (case when j.dedup is null then j.job_id end))
        where dedup_key is not null do nothing
        returning j.queue, j.lane_id, j.concurrency_key, j.priority, j.run_at
        into _queue, _lane_id, _key, _priority, _run_at;
        if found then
            if job.after is not null or job.batch_id is not null then
                perform jobq_private.follow(array[job], array[_new]);
            end if;
            if _lane_id is not null then
                perform jobq_private.call_lane(_lane_id, _queue, _key, _priority, _run_at);
            end if;
            if _run_at < now() + interval '60 s' then
                perform jobq_private.wake(array[_queue]);
            end if;
            return;
        end if;
        _tries := _tries + 1;
        if _tries = 20 then
            perform jobq_private.raise_error('DEDUP_CONFLICT', format(
                'kind %s, dedup_key %s', job.kind, job.dedup_key
            ));
        end if;
        if not _is_checked then
            select jobq_private.check_new_job(job, s) into _is_checked
            from jobq_private.settings_for(job.kind, job.queue) as s;
        end if;
        select y.job_id, y.created into job_id, created
        from jobq_private.yield_dedup_key(job, _new) as y;
    end loop;

    perform pg_logical_emit_message(true, 'jobq', '');
    update jobq_private.idempotency_key as k
    set job_id = store_job.job_id
    where k.kind = job.kind and k.idempotency_key = job.idempotency_key and k.job_id = _new;
end
$$;

revoke all on function jobq_private.store_job from public;

comment on function jobq_private.store_job is
'Checks and inserts one job, or finds the job that holds its idempotency or dedup key.';

-- Purpose: insert many checked jobs that have no dedup key, and wake their queues.
-- Invariant: one statement, whatever their number. ids has, by ordinal, the ids under which
-- idempotency keys are held already. Raises: 22004, 22023, JQ001, JQ002, JQ006.
create or replace function jobq_private.store_jobs(
    jobs jobq_private.new_job[], ids uuid[] default '{}', is_checked boolean default false
)
returns table (ordinal integer, job_id uuid)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    _ids constant uuid[] := array(
        select coalesce(store_jobs.ids[j.ordinal], jobq_private.new_id())
        from unnest(store_jobs.jobs) as j
    );
    _queues text[];
    _has_keys boolean;
    _has_links boolean;
begin
    with stored as (
        insert into jobq_private.job as j (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            idempotency_key, metadata, delivery_version, concurrency_key, lane_id, expires_at,
            keep, state, batch_id, is_awaited
        )
        select
            r.job_id, r.kind, r.payload, r.queue, r.run_at, r.priority, r.max_attempts,
            r.timeout, r.lease, r.idempotency_key, r.metadata, r.delivery_version,
            r.concurrency_key, r.lane_id, r.expires_at, r.keep, r.state, r.batch_id,
            r.is_awaited
        from jobq_private.job_rows(store_jobs.jobs, _ids) as r
        where store_jobs.is_checked
        or (select jobq_private.check_payload_schemas(store_jobs.jobs))
        returning
            case when j.run_at < now() + interval '60 s' then j.queue end as queue,
            j.lane_id is not null as has_key,
            j.state = 'blocked' or j.batch_id is not null as has_link
    ),
    kinds as (
        select s.queue, bool_or(s.has_key) as has_keys, bool_or(s.has_link) as has_links
        from stored as s
        group by s.queue
    )
    select
        array_agg(k.queue) filter (where k.queue is not null), bool_or(k.has_keys),
        bool_or(k.has_links)
    into _queues, _has_keys, _has_links
    from kinds as k;

    if _has_links then
        perform jobq_private.follow(store_jobs.jobs, _ids);
    end if;
    if _has_keys then
        perform jobq_private.call_lanes(_ids);
    end if;
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
    return query
    select j.ordinal, _ids[j.ordinality]
    from unnest(store_jobs.jobs) with ordinality as j;
end
$$;

revoke all on function jobq_private.store_jobs from public;

comment on function jobq_private.store_jobs is
'Inserts many checked jobs without dedup keys, and wakes their queues.';

-- Purpose: what is added to the transitions is legal in every lane.
-- Invariant: the foreign key of the lanes takes along what is changed or deleted.
-- Raises: nothing.
create or replace function jobq_private.fill_lanes()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into jobq_private.transition_lane (lane, from_state, to_state)
    select n.lane, a.from_state, a.to_state
    from generate_series(0, 1023) as n (lane)
    cross join added as a;
    return null;
end
$$;

revoke all on function jobq_private.fill_lanes from public;

comment on function jobq_private.fill_lanes is
'Copies what is added to the transitions into every lane.';

create or replace trigger transition_lane
after insert on jobq_private.transition
referencing new table as added
for each statement execute function jobq_private.fill_lanes();

-- Purpose: why a JSON value cannot be stored: the error's code and its detail; null when it
-- can. size is the bytes of its text.
-- Invariant: what is nested deeper, or holds a number beyond the range of a double, could
-- not be read by clients. strict, for lax looks at nested arrays over and over; for new
-- jobs new_job_problem() does the same inline.
-- Raises: by its callers, JQ005, JQ006.
create or replace function jobq_private.value_problem(
    value jsonb, size integer, max_bytes integer, max_depth integer
)
returns text[]
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select case
        when size > max_bytes
        then array['PAYLOAD_TOO_LARGE', format(
            '%s bytes, at most %s', size, max_bytes
        )]
        when size > 2 * max_depth and jsonb_path_exists(
            value, format('strict $.**{%s}', max_depth)::jsonpath
        )
        then array['PAYLOAD_TOO_DEEP', format('at most %s levels', max_depth)]
        when size > 308 and jobq_private.has_huge_number(value)
        then array['PAYLOAD_INVALID', 'a number beyond the range of a double']
    end
$$;

revoke all on function jobq_private.value_problem from public;

comment on function jobq_private.value_problem is
'Says why a JSON value cannot be stored, as the code of an error and its detail.';

-- Purpose: the live job that has the dedup key, or the new id once the key may be tried again.
-- Invariant: replace cancels a job that waits, and never one that runs: then the new job is
-- refused, but for a schedule's slot, for which the running one stands. debounce changes one that
-- has not begun.
-- Raises: JQ004.
create or replace function jobq_private.yield_dedup_key(
    job jobq_private.new_job, new_id uuid, out job_id uuid, out created boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _state text;
    _dedup text;
begin
    select j.job_id, j.state into job_id, _state
    from jobq_private.job as j
    where j.kind = job.kind
    and j.dedup_key = job.dedup_key
    order by j.state = 'running' desc, j.dedup is null, j.job_id
    limit 1;

    created := not found;
    if not created then
        select coalesce(job.dedup, s.dedup) into _dedup
        from jobq_private.settings_for(job.kind, job.queue) as s;
        created := _state <> 'running' and _dedup = 'replace';
        if _state = 'running' and _dedup = 'replace' and job.schedule_id is null then
            perform jobq_private.raise_error('DEDUP_CONFLICT', format(
                'kind %s, dedup_key %s: job_id %s runs', job.kind, job.dedup_key, job_id
            ));
        end if;
    end if;
    if not created and _dedup = 'debounce' then
        perform jobq_private.put_off(job_id, job);
    elsif created then
        update jobq_private.job as j
        set
            state = 'cancelled',
            cancel_reason = 'replaced by ' || yield_dedup_key.new_id
        where j.job_id = yield_dedup_key.job_id and j.state in ('blocked', 'queued', 'retrying');
        job_id := yield_dedup_key.new_id;
    end if;
end
$$;

revoke all on function jobq_private.yield_dedup_key from public;

comment on function jobq_private.yield_dedup_key is
'Finds the live job that holds a dedup key, or makes room for the one that replaces it.';

-- Purpose: for tests: as if so much time had passed for jobs that wait, in this transaction.
-- Invariant: moves what they wait for, their expiry and the deadlines of their waits; schedules and leases are
-- left as they are. No role is granted it, so that only who owns the tables can call it. Raises: 22004, 22023.
-- Argument by: how much time, 0 to 36500 days.
-- Returns: how many jobs were moved.
-- Example: select jobq.advance_clock('1 hour');
create or replace function jobq.advance_clock(by interval)
returns bigint
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _moved uuid[];
begin
    if advance_clock.by is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'by');
    elsif advance_clock.by not between '0' and '36500 days' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'by must be from 0 to 36500 days');
    end if;
    update jobq_private.waiter as w set deadline = w.deadline - advance_clock.by;
    with moved as (
        update jobq_private.job as j
        set run_at = j.run_at - advance_clock.by, expires_at = j.expires_at - advance_clock.by
        where j.state in ('queued', 'retrying')
        returning j.job_id
    )
    select array_agg(m.job_id) into _moved from moved as m;
    perform jobq_private.call_lanes(coalesce(_moved, '{}'));
    return coalesce(cardinality(_moved), 0);
end
$$;

revoke all on function jobq.advance_clock from public;

comment on function jobq.advance_clock is
'For tests: moves what waiting jobs wait for into the past, as if so much time had gone by.';

-- Purpose: every attempt of every job: those that failed, the one that succeeded, and the
-- one that runs.
-- Invariant: an attempt stands in one of three places, and so here once.
-- Column state: what became of it: succeeded, retrying, dead, cancelled, queued (given
-- back), or running.
-- Column result: the result of the attempt that succeeded.
create or replace view jobq.attempt as
select
    t.job_id, t.attempt, t.state, t.started_at, t.finished_at,
    t.finished_at - t.started_at as duration, t.worker, t.error_code, t.error,
    null::jsonb as result, t.error_details
from jobq_private.attempt as t
union all
select
    a.job_id, a.attempt, a.state, a.claimed_at, a.finished_at,
    a.finished_at - a.claimed_at, a.worker, null, null, a.result,
    null
from jobq_private.job_archive as a
where a.state = 'succeeded'
union all
select
    j.job_id, j.attempt, j.state, j.claimed_at, null, null, j.worker, null, null, null,
    null
from jobq_private.job as j
where j.state = 'running';

revoke all on jobq.attempt from public;
grant select on jobq.attempt to jobq_reader;

comment on view jobq.attempt is
'Every attempt: state is what it left the job in, or running.';

-- Purpose: the listening session of a client says that it is about to sleep until a job ends.
-- Invariant: LISTEN jobq_events has committed before. The locks (shared, session) are taken
-- before the client looks once more with listen_events(): who ends jobs holds its lock of the
-- archive before it tests these, so that one of the two sees the other. Raises: nothing.
-- Returns: nothing.
-- Example: select jobq.await_events();
create or replace function jobq.await_events()
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _ending constant integer := jobq_private.lock_class('ending');
    _any_job constant integer := 1024;
    _any_event constant integer := 1025;
begin
    perform pg_advisory_unlock_all();
    perform pg_advisory_lock_shared(_ending, _any_event);
    perform pg_advisory_lock_shared(_ending, _any_job);
end
$$;

revoke all on function jobq.await_events from public;
grant execute on function jobq.await_events to jobq_operator, jobq_reader;

comment on function jobq.await_events is
'Has the listening session notified on jobq_events when any job ends, until end_wait().';

-- Purpose: stop a job: at once while it waits, by asking its worker while it runs.
-- Invariant: the row lock decides between cancel and complete; whoever comes second sees
-- what the first has done. Raises: 22004, 22023, JQ001.
-- Returns: cancelled when it waited, cancel_requested when it runs, already_finished
-- when it has ended.
-- Example: select jobq.cancel(:'waiting', 'ordered twice');
create or replace function jobq.cancel(job_id uuid, reason text default null)
returns text
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _state text;
    _queue text;
begin
    if cancel.job_id is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_id');
    elsif length(cancel.reason) > 512 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'reason must have at most 512 characters'
        );
    end if;

    select j.state, j.queue into _state, _queue
    from jobq_private.job as j
    where j.job_id = cancel.job_id
    for update;
    if not found then
        perform jobq.get_job(cancel.job_id);
        return 'already_finished';
    elsif _state = 'running' then
        update jobq_private.job as j
        set
            cancel_requested_at = coalesce(j.cancel_requested_at, now()),
            cancel_reason = coalesce(j.cancel_reason, cancel.reason)
        where j.job_id = cancel.job_id;
        perform jobq_private.record_audit('cancel', cancel.job_id::text, cancel.reason);
        perform jobq_private.notify('jobq_cancel', _queue);
        return 'cancel_requested';
    end if;

    update jobq_private.job as j
    set state = 'cancelled', cancel_reason = cancel.reason
    where j.job_id = cancel.job_id;
    perform jobq_private.record_audit('cancel', cancel.job_id::text, cancel.reason);
    return 'cancelled';
end
$$;

revoke all on function jobq.cancel from public;
grant execute on function jobq.cancel to jobq_producer, jobq_operator;

comment on function jobq.cancel is
'Cancels a waiting job, asks the worker of a running one, and says which.';

-- Purpose: stop many jobs: those that wait at once, those that run by asking their workers.
-- Invariant: each as by cancel(), in one transaction and few statements. Raises: 22004, 22023, JQ001, JQ002.
-- Argument job_ids: these jobs; none may have ended. Filters given beside it narrow it down.
-- Argument queue: only jobs of this queue; null means all.
-- Argument kind: only jobs of this kind; null means all.
-- Argument metadata: only jobs whose metadata contains this object; null means all.
-- Argument state: only jobs in this state: blocked, queued, retrying or running; null means all.
-- Argument max_jobs: at most so many, 1 to 100000, the oldest first.
-- Argument dry_run: true cancels nothing, and returns the jobs with their states.
-- Argument reason: why; kept with each job, at most 512 characters.
-- Column outcome: cancelled or cancel_requested; at a dry run the state that the job is in.
-- Example: select * from jobq.cancel_many(queue => 'default', reason => 'wrong input', dry_run => true);
create or replace function jobq.cancel_many(
    job_ids uuid[] default null,
    queue text default null,
    kind text default null,
    metadata jsonb default null,
    state text default null,
    max_jobs integer default 1000,
    dry_run boolean default false,
    reason text default null
)
returns table (job_id uuid, outcome text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _chosen uuid[];
begin
    if cancel_many.state not in ('blocked', 'queued', 'retrying', 'running') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'state must be blocked, queued, retrying or running'
        );
    end if;
    _chosen := jobq_private.choose_jobs(
        cancel_many.job_ids, cancel_many.queue, cancel_many.kind, cancel_many.metadata,
        cancel_many.max_jobs, cancel_many.dry_run, cancel_many.reason,
        case
            when cancel_many.state is null then '{blocked,queued,retrying,running}'
            else array[cancel_many.state]
        end
    );
    if not cancel_many.dry_run then
        return query
        select c.* from jobq_private.cancel_jobs(_chosen, cancel_many.reason) as c;
        return;
    end if;
    return query
    select c.job_id, j.state
    from unnest(_chosen) as c (job_id)
    join jobq_private.job as j on j.job_id = c.job_id;
end
$$;

revoke all on function jobq.cancel_many from public;
grant execute on function jobq.cancel_many to jobq_operator;

comment on function jobq.cancel_many is
'Cancels many waiting jobs, asks the workers of running ones, and says which.';

-- Purpose: change jobs that wait: when they run or expire, their priority, queue and payload.
-- Invariant: all or none, and only while they wait: a job that a worker takes meanwhile is
-- passed over. The payload of a job that has run once stays what it was. A job that waits
-- for an event is due at its deadline at the latest.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Argument changes: a JSON object with any of run_at (an instant, or `"now"`), priority, queue,
-- payload, timeout and expires_at; what it does not name, or names as null, stays.
-- Argument job_ids: these jobs; each must wait. Filters given beside it narrow it down.
-- Argument queue: only jobs of this queue; null means all.
-- Argument kind: only jobs of this kind; null means all.
-- Argument metadata: only jobs whose metadata contains this object; null means all.
-- Argument max_jobs: at most so many, 1 to 100000, the oldest first.
-- Argument dry_run: true changes nothing, and returns the jobs that would be.
-- Argument reason: why, for the audit; at most 512 characters.
-- Returns: the ids of the jobs.
-- Example: select * from jobq.change_many('{"run_at": "now", "priority": 5}', kind => 'send_email', dry_run => true);
create or replace function jobq.change_many(
    changes jsonb,
    job_ids uuid[] default null,
    queue text default null,
    kind text default null,
    metadata jsonb default null,
    max_jobs integer default 1000,
    dry_run boolean default false,
    reason text default null
)
returns setof uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _chosen uuid[];
    _set jobq_private.new_job;
    _queues text[];
begin
    _chosen := jobq_private.choose_jobs(
        change_many.job_ids, change_many.queue, change_many.kind, change_many.metadata,
        change_many.max_jobs, change_many.dry_run, change_many.reason, '{queued,retrying}'
    );
    _set := jobq_private.check_change(change_many.changes, _chosen);
    if not change_many.dry_run then
        if _set.queue is not null then
            perform jobq_private.call_left_lanes(_chosen, _set.queue);
        end if;
        with changed as (
            update jobq_private.job as j
            set
                run_at = least(coalesce(_set.run_at, j.run_at), (
                    select min(w.deadline)
                    from jobq_private.waiter as w
                    where w.job_id = j.job_id and _set.run_at is not null
                )),
                priority = coalesce(_set.priority, j.priority),
                queue = coalesce(_set.queue, j.queue),
                lane_id = jobq_private.lane_id(
                    coalesce(_set.queue, j.queue), j.concurrency_key
                ),
                payload = coalesce(_set.payload, j.payload),
                timeout = coalesce(_set.timeout, j.timeout),
                expires_at = coalesce(_set.expires_at, j.expires_at)
            where j.job_id = any(_chosen)
            returning j.queue, j.run_at
        )
        select array_agg(distinct c.queue) into _queues
        from changed as c
        where c.run_at < clock_timestamp() + interval '60 s';
        perform jobq_private.call_lanes(_chosen);
        perform jobq_private.wake(coalesce(_queues, '{}'));
        perform jobq_private.record_audit(
            'change ' || array_to_string(array(select jsonb_object_keys(change_many.changes)), ', '),
            c.job_id::text, change_many.reason
        )
        from unnest(_chosen) as c (job_id);
    end if;
    return query select c.job_id from unnest(_chosen) as c (job_id);
end
$$;

revoke all on function jobq.change_many from public;
grant execute on function jobq.change_many to jobq_operator;

comment on function jobq.change_many is
'Changes when waiting jobs run, their priority, queue, timeout or payload, and returns their ids.';

-- Purpose: delete jobs that wait or have ended, with all that is known of them: attempts, log,
-- steps and idempotency keys, which are free again.
-- Invariant: all or none; no job that runs. Clients that wait for one learn that it is not
-- there. Raises: 22004, 22023, JQ001, JQ002.
-- Argument job_ids: these jobs, waiting or ended; none may run. Filters beside it narrow it
-- down.
-- Argument queue: only jobs of this queue; null means all.
-- Argument kind: only jobs of this kind; null means all.
-- Argument metadata: only jobs whose metadata contains this object; null means all.
-- Argument state: only jobs in this state: blocked, queued, retrying, succeeded, dead or
-- cancelled; null means those that wait, and with job_ids all.
-- Argument max_jobs: at most so many, 1 to 100000, the oldest first.
-- Argument dry_run: true deletes nothing, and returns the jobs that would be.
-- Argument reason: why, for the audit; at most 512 characters.
-- Returns: the ids of the jobs.
-- Example: select * from jobq.delete_many(queue => 'default', dry_run => true);
create or replace function jobq.delete_many(
    job_ids uuid[] default null,
    queue text default null,
    kind text default null,
    metadata jsonb default null,
    state text default null,
    max_jobs integer default 1000,
    dry_run boolean default false,
    reason text default null
)
returns setof uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _waiting constant text[] := array['blocked', 'queued', 'retrying'];
    _ended constant text[] := array['succeeded', 'dead', 'cancelled'];
    _chosen uuid[];
begin
    if delete_many.state <> all(_waiting || _ended) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'state must be blocked, queued, retrying, succeeded, dead or cancelled'
        );
    end if;
    _chosen := jobq_private.choose_jobs(
        delete_many.job_ids, delete_many.queue, delete_many.kind, delete_many.metadata,
        delete_many.max_jobs, delete_many.dry_run, delete_many.reason,
        case
            when delete_many.state is not null then array[delete_many.state]
            when delete_many.job_ids is not null then _waiting || _ended
            else _waiting
        end
    );
    if not delete_many.dry_run then
        perform jobq_private.forget_jobs(_chosen);
        perform jobq_private.record_audit('delete', c.job_id::text, delete_many.reason)
        from unnest(_chosen) as c (job_id);
    end if;
    return query select c.job_id from unnest(_chosen) as c (job_id);
end
$$;

revoke all on function jobq.delete_many from public;
grant execute on function jobq.delete_many to jobq_operator;

comment on function jobq.delete_many is
'Deletes jobs that wait or have ended, with all that is known of them, and returns their ids.';

-- Purpose: add one job to a queue, in the caller's transaction.
-- Invariant: the job exists when the caller's transaction commits, and not otherwise; an
-- idempotency key or dedup key that is taken yields the job that holds it.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
-- Argument queue: the queue; null means the kind's, else default.
-- Argument priority: higher ones are claimed first, -32768 to 32767; null takes the
-- setting.
-- Argument max_attempts: after how many failed attempts it is dead, 1 to 10000; null
-- takes the setting.
-- Argument timeout: how long an attempt may run, 1 ms to 365 days; null takes the
-- setting.
-- Argument run_at: not before this instant; null means now.
-- Argument expires_at: no attempt begins after this instant: the job is then dead, with the
-- code EXPIRED; after run_at, null for never.
-- Argument after: the jobs that it waits for, live or ended; until then it is blocked.
-- Argument after_failure: when one of them is dead or cancelled: cancel (it is cancelled
-- too), wait (it waits until that one is redriven) or run (it runs when all have ended,
-- however); null means cancel.
-- Argument batch_id: the batch that it becomes a member of, which has not ended.
-- Returns: the id of the job: the new one, or the one that holds the key already.
-- Example: select jobq.enqueue('send_email', '{"to": "ada@example.org"}', run_at => now() + interval '1 h');
create or replace function jobq.enqueue(
    kind text,
    payload jsonb default '{}',
    queue text default null,
    run_at timestamptz default null,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    idempotency_key text default null,
    dedup_key text default null,
    dedup text default null,
    metadata jsonb default null,
    concurrency_key text default null,
    expires_at timestamptz default null,
    after uuid[] default null,
    after_failure text default null,
    batch_id uuid default null
)
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return (jobq_private.store_job(row(
        1, enqueue.kind, enqueue.payload, enqueue.queue, enqueue.run_at, enqueue.priority,
        enqueue.max_attempts, enqueue.timeout, enqueue.idempotency_key, enqueue.dedup_key,
        enqueue.dedup, enqueue.metadata, null, null, enqueue.concurrency_key,
        enqueue.expires_at,
        enqueue.after, enqueue.after_failure, enqueue.batch_id, null, null
    )::jobq_private.new_job)).job_id;
end
$$;

revoke all on function jobq.enqueue from public;
grant execute on function jobq.enqueue to jobq_producer;

comment on function jobq.enqueue is
'Adds a job in the caller''s transaction and returns its id, or the id of the job that already holds its key.';

-- Purpose: add many jobs with one call, given as a JSON array of objects whose members
-- are named as the parameters of enqueue().
-- Invariant: all or none. An unknown member is refused.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
-- Members jobs: enqueue
-- Column job_id: the id of the job: the new one, or the one that holds the key already.
-- Example: select * from jobq.enqueue_many('[{"kind": "send_email", "payload": {"to": "ada@example.org"}},
--     {"kind": "send_email", "payload": {"to": "bob@example.org"}, "priority": 5}]');
create or replace function jobq.enqueue_many(jobs jsonb)
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _known constant text[] := array[
        'kind', 'payload', 'queue', 'run_at', 'priority', 'max_attempts', 'timeout',
        'idempotency_key', 'dedup_key', 'dedup', 'metadata',
        'concurrency_key', 'expires_at', 'after', 'after_failure', 'batch_id'
    ];
begin
    return query
    select i.ordinal, i.job_id, i.created
    from jobq_private.insert_jobs(
        jobq_private.read_jobs(enqueue_many.jobs, _known)
    ) as i
    order by i.ordinal;
end
$$;

revoke all on function jobq.enqueue_many from public;
grant execute on function jobq.enqueue_many to jobq_producer;

comment on function jobq.enqueue_many is
'Adds many jobs, all or none, and tells for each one its id and whether it was created.';

-- Purpose: one job, live or archived.
-- Invariant: the archive is looked at from the day before the id's own time, so that older
-- partitions are passed over, and a clock that was set back hides nothing.
-- Raises: 22004, JQ001.
-- Returns: a row of jobq.job.
-- Example: select state, attempts, last_error from jobq.get_job(:'dead');
create or replace function jobq.get_job(job_id uuid)
returns jobq.job
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq.job;
begin
    if get_job.job_id is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_id');
    end if;
    select j.* into _job
    from jobq.job as j
    where j.job_id = get_job.job_id and j.finished_at is null;
    if not found then
        select j.* into _job
        from jobq.job as j
        where j.job_id = get_job.job_id
        and j.finished_at
            >= jobq_private.id_time(get_job.job_id) - interval '1 day';
    end if;
    if not found then
        perform jobq_private.raise_error('JOB_NOT_FOUND', format('job_id %s', get_job.job_id));
    end if;
    return _job;
end
$$;

revoke all on function jobq.get_job from public;
grant execute on function jobq.get_job
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.get_job is
'Returns one job, live or archived.';

-- Purpose: say why a job is not running, in the words of somebody who looks at 3 a.m.
-- Invariant: reads only; every reason that holds is a row, the first one first.
-- Raises: 22004, JQ001.
-- Returns: a row for each reason that holds, the first one first.
-- Column reason: blocked, held_up, paused, event, key_busy, queue_busy, kind_busy,
-- rate_limited, held, ordered_behind, scheduled, backoff, no_worker, unknown_kind,
-- waiting, running or finished.
-- Column explanation: the same in words, with the values.
-- Example: select * from jobq.explain(:'waiting');
create or replace function jobq.explain(job_id uuid)
returns table (reason text, explanation text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq.job := jobq.get_job(explain.job_id);
begin
    if _job.finished_at is not null then
        return query select 'finished', format(
            '%s at %s, after %s attempts%s', _job.state, _job.finished_at, _job.attempts,
            coalesce(': ' || coalesce(_job.last_error_code || ' ', '') || _job.last_error, '')
        );
        return;
    elsif _job.state = 'running' then
        return query select 'running', format(
            'attempt %s on %s since %s; lease %s %s', _job.attempt, _job.worker,
            _job.claimed_at,
            case when _job.lease_expires_at < clock_timestamp()
                then 'expired (recover() will take it back)' else 'until' end,
            _job.lease_expires_at
        );
        return;
    elsif _job.state = 'blocked' then
        return query select b.* from jobq_private.explain_blocked(_job) as b;
        return;
    end if;

    return query
    select 'paused', format('queue %s since %s%s', q.queue, q.paused_at,
        coalesce(': ' || q.pause_reason, ''))
    from jobq_private.queue as q
    where q.queue = _job.queue and q.paused_at is not null;
    return query
    select 'paused', format('endpoint %s since %s%s', e.endpoint, e.paused_at,
        coalesce(': ' || e.pause_reason, ''))
    from jobq_private.endpoint as e
    where e.endpoint = _job.kind
    and _job.delivery_version is not null
    and e.paused_at is not null
    and e.test_job_id is distinct from _job.job_id;
    if found and _job.run_at = jobq_private.parked_until() then
        return;
    end if;
    return query
    select 'event', format('waits for %s since %s, until %s', w.event, w.since, w.deadline)
    from jobq_private.waiter as w
    where w.job_id = _job.job_id and w.deadline > clock_timestamp()
    order by w.since;
    return query
    select b.reason, b.explanation from jobq_private.explain_barrier(_job.job_id) as b;
    if _job.run_at > clock_timestamp() then
        return query select
            case _job.state when 'retrying' then 'backoff' else 'scheduled' end,
            format('runs at %s, in %s', _job.run_at, _job.run_at - clock_timestamp());
        return;
    end if;
    if not exists (
        select from jobq_private.worker as w
        where _job.queue = any (w.queues) and w.seen_at > now() - interval '1 min'
    ) then
        return query select 'no_worker', format(
            'no worker of queue %s was seen in the last minute', _job.queue
        );
    elsif jobq_private.is_unknown(_job.kind, _job.queue) then
        return query select 'unknown_kind', format(
            'no live worker of queue %s has a handler for kind %s', _job.queue, _job.kind
        );
    end if;
    return query select 'waiting', format(
        '%s jobs of queue %s are ahead of it',
        case when a.jobs > 10000 then '10000+' else a.jobs::text end, _job.queue
    )
    from jobq_private.jobs_ahead(
        _job.queue, _job.priority, _job.run_at, _job.job_id
    ) as a (jobs);
end
$$;

revoke all on function jobq.explain from public;
grant execute on function jobq.explain to jobq_producer, jobq_operator, jobq_reader;

comment on function jobq.explain is
'Says why a job is not running: blocked by other jobs, paused, an event, a limit, a rate, a hold, scheduled, backoff, no_worker, unknown_kind, waiting, running or finished.';

-- Purpose: the job that an idempotency key of a kind stands for, or null.
-- Invariant: reads only; a key outlives its job's row only as long as it is retained.
-- Raises: 22004.
-- Returns: the job's id, or null.
-- Example: select jobq.find_job('send_email', 'welcome-ada');
create or replace function jobq.find_job(kind text, idempotency_key text)
returns uuid
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(find_job.kind, find_job.idempotency_key) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'kind and idempotency_key');
    end if;
    return (
        select k.job_id
        from jobq_private.idempotency_key as k
        where k.kind = find_job.kind and k.idempotency_key = find_job.idempotency_key
        and (
            k.created_at >= now() - (select g.key_retention from jobq_private.setting as g)
            or exists (select from jobq_private.job as j where j.job_id = k.job_id)
        )
    );
end
$$;

revoke all on function jobq.find_job from public;
grant execute on function jobq.find_job
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.find_job is
'Returns the id of the job that an idempotency key of a kind stands for, or null.';

-- Purpose: the attempts of one job, in their order.
-- Invariant: one row for each attempt. Raises: 22004, JQ001.
-- Returns: rows of jobq.attempt.
-- Example: select attempt, state, error from jobq.list_attempts(:'dead');
create or replace function jobq.list_attempts(job_id uuid)
returns setof jobq.attempt
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq.get_job(list_attempts.job_id);
    return query
    select t.*
    from jobq.attempt as t
    where t.job_id = list_attempts.job_id
    order by t.attempt;
end
$$;

revoke all on function jobq.list_attempts from public;
grant execute on function jobq.list_attempts to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_attempts is
'Returns the attempts of one job, in their order.';

-- Purpose: a page of jobs, newest first. A search that has looked at 100,000 jobs ends with a row
-- whose state is null, if the page is not full: from its job_id on it goes on.
-- Invariant: before is the last id of the page before: ids are ordered by time, so pages
-- are stable while jobs are added. Raises: 22004, 22023.
-- Argument state: only this one; null means all.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument before: only jobs made before this one: the last id of the page before.
-- Argument max_jobs: at most so many, 1 to 1000.
-- Returns: rows of jobq.job; the last one may be a mark, of nothing but the job_id that before
-- takes to go on.
-- Example: select job_id, state from jobq.list_jobs('dead', max_jobs => 10);
create or replace function jobq.list_jobs(
    state text default null,
    kind text default null,
    queue text default null,
    before uuid default null,
    max_jobs integer default 50
)
returns setof jobq.job
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if list_jobs.max_jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs');
    elsif list_jobs.max_jobs not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_jobs must be from 1 to 1000'
        );
    elsif list_jobs.state not in (
        'blocked', 'queued', 'running', 'retrying', 'succeeded', 'dead', 'cancelled'
    ) then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'state must be blocked, queued, running, retrying, succeeded, dead or cancelled');
    end if;
    return query
    select s.*
    from jobq_private.search_jobs(
        nullif(array[list_jobs.state], '{null}'), list_jobs.kind, list_jobs.queue, null, null,
        null, '00000000-0000-0000-0000-000000000000',
        coalesce(list_jobs.before, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), list_jobs.max_jobs
    ) as s;
end
$$;

revoke all on function jobq.list_jobs from public;
grant execute on function jobq.list_jobs to jobq_operator, jobq_reader;

comment on function jobq.list_jobs is
'Returns a page of jobs, newest first; before is the last id of the page before.';

-- Purpose: the log of one job, in its order.
-- Invariant: reads only. Raises: 22004, JQ001.
-- Example: select * from jobq.list_logs(:'running');
create or replace function jobq.list_logs(job_id uuid)
returns table (attempt integer, logged_at timestamptz, level text, message text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq.get_job(list_logs.job_id);
    return query
    select l.attempt, l.logged_at, l.level, l.message
    from jobq_private.job_log as l
    where l.job_id = list_logs.job_id
    order by l.logged_at, l.sequence;
end
$$;

revoke all on function jobq.list_logs from public;
grant execute on function jobq.list_logs to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_logs is
'Returns the log of one job, in its order.';

-- Purpose: a page of the jobs that have ended, in the order of their ends.
-- Invariant: each job once, however commits overtake each other: a page reaches up to the
-- present only when every transaction that was ending jobs then has ended itself (see
-- settled_at). It waits 100 ms for that. A call reads some 20,000 rows, so that a page may be
-- empty and its cursor have moved. It reads the archive alone: a job that leaves no trace, or
-- was run again before, is not there. Raises: 22004, 22023.
-- Argument after: where the page before ended, or the cursor of an event; null begins at since.
-- Argument queues: only jobs of these queues; null means all.
-- Argument kinds: only jobs of these kinds; null means all.
-- Argument since: without after: only jobs that ended at or after this instant; null means now.
-- Argument max_events: at most so many, 1 to 1000.
-- Column events: a JSON array of objects: cursor, job_id, kind, queue, state, attempts,
-- error_code, metadata, batch_id, created_at and finished_at.
-- Column cursor: where the next page begins.
-- Column is_behind: whether there is more to be read at once.
-- Column is_settled: false while an open transaction that has ended jobs keeps back what
-- has ended after them.
-- Example: select * from jobq.listen_events(kinds => '{send_email}', since => now() - interval '1 h');
create or replace function jobq.listen_events(
    after text default null,
    queues text[] default null,
    kinds text[] default null,
    since timestamptz default null,
    max_events integer default 100
)
returns table (events jsonb, cursor text, is_behind boolean, is_settled boolean)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
    _from timestamptz;
    _job_id uuid := '00000000-0000-0000-0000-000000000000'::uuid;
    _until timestamptz;
    _to timestamptz;
begin
    perform jobq_private.check_listening(after, queues, kinds, since, max_events);
    _from := coalesce(listen_events.since, clock_timestamp());
    if listen_events.after is not null then
        select p.at, p.job_id into _from, _job_id
        from jobq_private.cursor_place(listen_events.after) as p;
    end if;
    _until := jobq_private.settled_at('100 ms');
    listen_events.is_settled := _until is not null;
    _until := greatest(_until, _from);
    _to := jobq_private.event_span(
        _from, _job_id, _until, listen_events.queues, listen_events.kinds, max_events
    );
    select jsonb_agg(jsonb_build_object(
        'cursor', jobq_private.event_cursor(e.finished_at, e.job_id), 'job_id', e.job_id,
        'kind', e.kind, 'queue', e.queue, 'state', e.state, 'attempts', e.attempts,
        'error_code', e.last_error_code, 'metadata', e.metadata, 'batch_id', e.batch_id,
        'created_at', e.created_at, 'finished_at', e.finished_at
    ) order by e.finished_at, e.job_id)
    into listen_events.events
    from (
        select a.*, a.attempt - a.uncounted as attempts
        from jobq_private.job_archive as a
        where a.finished_at >= _from
        and a.finished_at < _to
        and (a.finished_at, a.job_id) > (_from, _job_id)
        and (listen_events.queues is null or a.queue = any(listen_events.queues))
        and (listen_events.kinds is null or a.kind = any(listen_events.kinds))
        order by a.finished_at, a.job_id
        limit max_events
    ) as e;
    listen_events.events := coalesce(listen_events.events, '[]');
    listen_events.is_behind := _to < _until
        or jsonb_array_length(listen_events.events) = max_events;
    listen_events.cursor := case
        when jsonb_array_length(listen_events.events) = max_events
        then listen_events.events -> -1 ->> 'cursor'
        when _to > _from
        then jobq_private.event_cursor(_to, '00000000-0000-0000-0000-000000000000')
        else jobq_private.event_cursor(_from, _job_id)
    end;
    return next;
end
$$;

revoke all on function jobq.listen_events from public;
grant execute on function jobq.listen_events to jobq_operator, jobq_reader;

comment on function jobq.listen_events is
'Returns a page of the jobs that have ended after a cursor, each once, by queue or kind.';

-- Purpose: run a dead or cancelled job again.
-- Invariant: its attempts start afresh, while the attempt number goes on as the fencing
-- token. One that was cancelled before those had ended that it waited for is blocked again.
-- Raises: 22004, JQ001, JQ002, JQ004.
-- Example: select jobq.redrive(:'dead');
create or replace function jobq.redrive(job_id uuid)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq.job := jobq.get_job(redrive.job_id);
begin
    if _job.state in ('dead', 'cancelled') then
        update jobq_private.job_archive as a
        set state = case
            when exists (
                select from jobq_private.edge as e where e.child = a.job_id and e.is_open
            )
            then 'blocked' else 'queued'
        end
        where a.job_id = _job.job_id
        and a.finished_at = _job.finished_at
        and a.state = _job.state;
        if found then
            return;
        end if;
        perform jobq_private.refuse_redrive(_job);
    end if;
    perform jobq_private.raise_error('ILLEGAL_STATE', format(
        'job_id %s is %s; dead and cancelled jobs can be redriven', _job.job_id, _job.state
    ));
end
$$;

revoke all on function jobq.redrive from public;
grant execute on function jobq.redrive to jobq_operator;

comment on function jobq.redrive is
'Puts a dead or cancelled job back in its queue.';

-- Purpose: run many dead jobs again: those of a queue, a kind or an error code that ended
-- within a time.
-- Invariant: bounded, oldest first; a job whose idempotency key or dedup key stands for
-- another job stays where it is, also when that came meanwhile; so does what another call
-- redrives. All go back in few steps, whatever their number. Raises: 22004, 22023.
-- Argument queue: only this queue; null means all.
-- Argument kind: only this kind; null means all.
-- Argument since: only those that ended since this instant.
-- Argument error_code: only those whose last error has this code; null means all.
-- Argument max_jobs: at most so many, 1 to 100000.
-- Argument job_ids: only those of these jobs that are dead; null means all.
-- Returns: the ids of the jobs that went back.
-- Example: select * from jobq.redrive_many(kind => 'send_email', error_code => 'RECIPIENT_REFUSED');
create or replace function jobq.redrive_many(
    queue text default null,
    kind text default null,
    since timestamptz default '-infinity',
    error_code text default null,
    max_jobs integer default 1000,
    job_ids uuid[] default null
)
returns setof uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _chosen uuid[];
    _ended timestamptz[];
    _keyed uuid[];
    _kinds text[];
    _queues text[];
    _keys text[];
    _barred uuid[] := '{}'::uuid[];
begin
    if num_nulls(redrive_many.since, redrive_many.max_jobs) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'since and max_jobs');
    elsif redrive_many.max_jobs not between 1 and 100000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_jobs must be from 1 to 100000'
        );
    end if;
    with chosen as materialized (
        select a.job_id, a.finished_at, a.kind, a.queue, a.idempotency_key
        from jobq_private.job_archive as a
        where a.state = 'dead'
        and a.finished_at >= redrive_many.since
        and (redrive_many.job_ids is null or a.job_id = any(redrive_many.job_ids))
        and (redrive_many.queue is null or a.queue = redrive_many.queue)
        and (redrive_many.kind is null or a.kind = redrive_many.kind)
        and (
            redrive_many.error_code is null or a.last_error_code = redrive_many.error_code
        )
        and (a.dedup is null or not exists (
            select from jobq_private.job as j
            where j.kind = a.kind and j.dedup_key = a.dedup_key and j.dedup is not null
        ))
        and (a.idempotency_key is null or not exists (
            select from jobq_private.idempotency_key as k
            where k.kind = a.kind
            and k.idempotency_key = a.idempotency_key
            and k.job_id <> a.job_id
            and not jobq_private.is_key_free(k.kind, a.queue, k.job_id, k.created_at)
        ))
        order by a.finished_at
        limit redrive_many.max_jobs
        for update of a skip locked
    )
    select
        array_agg(c.job_id), array_agg(c.finished_at),
        array_agg(c.job_id) filter (where c.idempotency_key is not null),
        array_agg(c.kind) filter (where c.idempotency_key is not null),
        array_agg(c.queue) filter (where c.idempotency_key is not null),
        array_agg(c.idempotency_key) filter (where c.idempotency_key is not null)
    into _chosen, _ended, _keyed, _kinds, _queues, _keys
    from chosen as c;

    if _keyed is not null then
        _barred := jobq_private.hold_old_keys(_keyed, _kinds, _queues, _keys);
    end if;
    if _chosen is not null then
        return query
        select r.* from jobq_private.redrive_jobs(_chosen, _ended, _barred) as r;
    end if;
end
$$;

revoke all on function jobq.redrive_many from public;
grant execute on function jobq.redrive_many to jobq_operator;

comment on function jobq.redrive_many is
'Puts dead jobs back in their queues and returns their ids.';

-- Purpose: the listening session of a client says that it waits for a job to end.
-- Invariant: LISTEN jobq_ended has committed before. The locks (shared, session) are taken
-- before the job is looked at again, so a completion that commits between the two looks is
-- seen; one that is in flight may not be, so the client looks again within 250 ms.
-- Raises: 22004, JQ001, and then nothing is locked.
-- Returns: true when it has ended already; else a notification on jobq_ended tells its
-- id when it does.
-- Example: select jobq.wait(:'running');
create or replace function jobq.wait(job_id uuid)
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _ending constant integer := jobq_private.lock_class('ending');
    _any_job constant integer := 1024;
begin
    perform jobq.get_job(wait.job_id);
    perform pg_advisory_lock_shared(_ending, _any_job);
    perform pg_advisory_lock_shared(_ending, hashtext(wait.job_id::text) & 1023);
    return (jobq.get_job(wait.job_id)).finished_at is not null;
end
$$;

revoke all on function jobq.wait from public;
grant execute on function jobq.wait
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.wait is
'Has the listening session notified on jobq_ended when this job ends; true when it has ended already.';

reset role;

-- Deploy jobq:grant_policies to pg
-- Who sees and touches which rows once jobq.enforce_queue_grants() has been called; before
-- that, policies are not even read. Functions of jobq run as jobq_owner, who owns the
-- tables, so security is forced; it is decided by who has logged in (held_queue).
--
-- A job, and all that hangs on it, belongs to its queue. A kind that names a queue belongs
-- to it too, with its endpoint and what that refers to; only with such a kind of one's own
-- can keys be used, since keys are held by kind. What belongs to no queue (settings,
-- secrets, other kinds) is changed by who works all queues.
set local role jobq_owner;

-- Live jobs. Who may only enqueue may cancel too, and no more: a row that it has written
-- is new, cancelled, or running with a request to cancel.
create policy job_select on jobq_private.job for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy job_insert on jobq_private.job for insert
with check (
    (
        (select h.enqueued from jobq_private.held_queue as h) && array['*', queue]
        or (
            num_nonnulls(previous_state, schedule_id) > 0
            and (select h.worked from jobq_private.held_queue as h) && array['*', queue]
        )
    )
    and not exists (
        select from jobq_private.kind_queue as o
        where o.kind = job.kind
        and not (select h.any_of from jobq_private.held_queue as h) && array['*', o.queue]
    )
    and (
        dedup is null
        or (select h.any_of from jobq_private.held_queue as h) && array['*']
        or exists (select from jobq_private.kind_queue as o where o.kind = job.kind)
    )
);

create policy job_update on jobq_private.job for update
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue])
with check (
    (select h.worked from jobq_private.held_queue as h) && array['*', queue]
    or (
        (state = 'cancelled' or cancel_requested_at is not null)
        and (select h.enqueued from jobq_private.held_queue as h) && array['*', queue]
    )
);

create policy job_delete on jobq_private.job for delete
using (
    (select h.worked from jobq_private.held_queue as h) && array['*', queue]
    or (
        state = 'cancelled'
        and (select h.enqueued from jobq_private.held_queue as h) && array['*', queue]
    )
);

-- History
create policy job_archive_select on jobq_private.job_archive for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy job_archive_insert on jobq_private.job_archive for insert
with check ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy job_archive_update on jobq_private.job_archive for update
using ((select h.worked from jobq_private.held_queue as h) && array['*', queue]);

create policy job_archive_delete on jobq_private.job_archive for delete
using ((select h.worked from jobq_private.held_queue as h) && array['*', queue]);

create policy attempt_select on jobq_private.attempt for select
using (exists (select from jobq.job as j where j.job_id = attempt.job_id));

create policy attempt_insert on jobq_private.attempt for insert
with check (true);

create policy attempt_delete on jobq_private.attempt for delete
using (exists (select from jobq.job as j where j.job_id = attempt.job_id));

create policy job_log_all on jobq_private.job_log
using (exists (select from jobq.job as j where j.job_id = job_log.job_id));

create policy step_all on jobq_private.step
using (
    (select h.worked from jobq_private.held_queue as h) && array['*']
    or exists (select from jobq.job as j where j.job_id = step.job_id)
);

create policy waiter_all on jobq_private.waiter
using (
    (select h.worked from jobq_private.held_queue as h) && array['*']
    or exists (select from jobq.job as j where j.job_id = waiter.job_id)
);

-- An event that is no signal belongs to no queue.
create policy event_all on jobq_private.event
using (
    (select h.any_of from jobq_private.held_queue as h) && array['*']
    or exists (select from jobq.job as j where j.job_id = event.job_id)
);

create policy late_event_all on jobq_private.late_event
using (true);

-- Edges and looks are nothing but ids, and shown to nobody; who sees a job sees what it waits
-- for as far as it sees that too.
create policy edge_all on jobq_private.edge
using (true);

create policy look_all on jobq_private.look
using (true);

create policy node_all on jobq_private.node
using (true);

create policy batch_all on jobq_private.batch
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy idempotency_key_all on jobq_private.idempotency_key
using (
    (select h.any_of from jobq_private.held_queue as h) && array['*']
    or exists (
        select from jobq_private.kind_queue as o
        where o.kind = idempotency_key.kind
        and (select h.any_of from jobq_private.held_queue as h) && array[o.queue]
    )
);

create policy throttle_all on jobq_private.throttle
using (
    (select h.any_of from jobq_private.held_queue as h) && array['*']
    or exists (
        select from jobq_private.kind_queue as o
        where o.kind = throttle.kind
        and (select h.any_of from jobq_private.held_queue as h) && array[o.queue]
    )
);

-- Schedules: one without a queue of its own belongs to who holds all queues.
create policy schedule_all on jobq_private.schedule
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy schedule_insert on jobq_private.schedule as restrictive for insert
with check (
    (select h.enqueued from jobq_private.held_queue as h) && array['*', queue]
    and not exists (
        select from jobq_private.kind_queue as o
        where o.kind = schedule.kind
        and not (select h.any_of from jobq_private.held_queue as h) && array['*', o.queue]
    )
    and (
        dedup = 'enqueue'
        or (select h.any_of from jobq_private.held_queue as h) && array['*']
        or exists (select from jobq_private.kind_queue as o where o.kind = schedule.kind)
    )
);

-- Lanes, calls to open them, and limits belong to their queue.
create policy lane_all on jobq_private.lane
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy lane_call_all on jobq_private.lane_call
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy key_limit_select on jobq_private.key_limit for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy key_limit_all on jobq_private.key_limit
using ((select h.worked from jobq_private.held_queue as h) && array['*', queue]);

-- So do gates, but for those of kinds as a whole.
create policy gate_all on jobq_private.gate
using (
    queue is null
    or (select h.worked from jobq_private.held_queue as h) && array['*', queue]
);

create policy kind_gate_all on jobq_private.kind_gate using (true);

create policy limit_change_all on jobq_private.limit_change using (true);

-- The history of charts belongs to its queue; what is of all queues, to who holds all.
create policy history_select on jobq_private.history for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy history_all on jobq_private.history
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy waiting_count_select on jobq_private.waiting_count for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy waiting_count_all on jobq_private.waiting_count
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy latency_select on jobq_private.latency for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*']);

create policy latency_all on jobq_private.latency
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

-- Workers belong to their log-in, and are seen by who holds a queue that they work.
create policy worker_all on jobq_private.worker
using (
    login = session_user
    or (select h.worked from jobq_private.held_queue as h) && array['*']
)
with check (
    queues <@ (select h.worked from jobq_private.held_queue as h)
    or (select h.worked from jobq_private.held_queue as h) && array['*']
);

create policy worker_select on jobq_private.worker for select
using ((select h.any_of from jobq_private.held_queue as h) && queues);

-- Definitions
create policy queue_select on jobq_private.queue for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy queue_all on jobq_private.queue
using ((select h.worked from jobq_private.held_queue as h) && array['*', queue]);

create policy kind_select on jobq_private.kind for select
using (
    queue is null
    or (select h.any_of from jobq_private.held_queue as h) && array['*', queue]
);

create policy kind_all on jobq_private.kind
using ((select h.worked from jobq_private.held_queue as h) && array['*', queue])
with check (
    (select h.worked from jobq_private.held_queue as h) && array['*']
    or (
        starts_with(kind, queue || '.')
        and (select h.worked from jobq_private.held_queue as h) && array[queue]
    )
);

create policy setting_select on jobq_private.setting for select
using (true);

create policy setting_update on jobq_private.setting for update
using (true)
with check ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy endpoint_select on jobq_private.endpoint for select
using (
    exists (
        select from jobq_private.kind_queue as o
        where o.kind = endpoint.endpoint
        and (select h.any_of from jobq_private.held_queue as h) && array[o.queue]
    )
);

create policy endpoint_all on jobq_private.endpoint
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy parked_job_all on jobq_private.parked_job
using (
    (select h.worked from jobq_private.held_queue as h) && array['*']
    or exists (select from jobq.job as j where j.job_id = parked_job.job_id)
);

create policy endpoint_secret_select on jobq_private.endpoint_secret for select
using (endpoint in (select e.endpoint from jobq_private.endpoint as e));

create policy endpoint_secret_all on jobq_private.endpoint_secret
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy payload_spec_select on jobq_private.payload_spec for select
using (payload_spec in (select e.payload_spec from jobq_private.endpoint as e));

create policy payload_spec_all on jobq_private.payload_spec
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy config_select on jobq_private.config for select
using (config in (select e.config from jobq_private.endpoint as e));

create policy config_all on jobq_private.config
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy secret_select on jobq_private.secret for select
using (secret in (select s.secret from jobq_private.endpoint_secret as s));

create policy secret_all on jobq_private.secret
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy pinned_definition_select on jobq_private.pinned_definition for select
using (endpoint in (select e.endpoint from jobq_private.endpoint as e));

create policy pinned_definition_all on jobq_private.pinned_definition
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy definition_version_select on jobq_private.definition_version for select
using (
    (
        type in ('endpoint', 'delivery')
        and name in (select e.endpoint from jobq_private.endpoint as e)
    )
    or (type, name) in (select p.type, p.name from jobq_private.pinned_definition as p)
);

create policy definition_version_all on jobq_private.definition_version
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

-- Keys of the HTTP API belong to the log-in that made them, which is the only one whose
-- servers they open (authenticate()).
create policy api_key_all on jobq_private.api_key
using (
    login = session_user
    or (select h.worked from jobq_private.held_queue as h) && array['*']
);

create policy audit_select on jobq_private.audit for select
using (
    actor = session_user
    or (select h.worked from jobq_private.held_queue as h) && array['*']
);

create policy audit_insert on jobq_private.audit for insert
with check (true);

reset role;

-- Deploy jobq:audit to pg
-- Made by sql/snapshot.py from sql/audit/: edit that.
set local role jobq_owner;

-- Purpose: note redrives, pauses, grants, and changes of keys and secrets, whoever makes
-- them and by whatever way. The trigger names the action and the columns of the subject.
-- Invariant: names and states alone are noted, never what a secret or a key is.
-- Raises: nothing.
create or replace function jobq_private.audit_change()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _new constant jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
    _row constant jsonb := coalesce(_new, to_jsonb(old));
    _action constant text := case
        when tg_argv[0] <> 'queue' then tg_argv[0]
        when _row ->> 'paused_at' is null then 'resume_queue'
        else 'pause_queue'
    end;
begin
    perform jobq_private.record_audit(
        _action,
        (
            select string_agg(_row ->> c.name, ' ' order by c.n)
            from unnest(tg_argv[1:]) with ordinality as c (name, n)
        ),
        case when _action = 'pause_queue' then _row ->> 'pause_reason' end
    );
    return null;
end
$$;

revoke all on function jobq_private.audit_change from public;

comment on function jobq_private.audit_change is
'Notes a change that an operator has made.';

create or replace trigger archive_audit
after update on jobq_private.job_archive
for each row when (new.state = 'queued')
execute function jobq_private.audit_change('redrive', 'job_id');

create or replace trigger queue_audit
after update on jobq_private.queue
for each row when (new.paused_at is distinct from old.paused_at)
execute function jobq_private.audit_change('queue', 'queue');

create or replace trigger queue_birth_audit
after insert on jobq_private.queue
for each row when (new.paused_at is not null)
execute function jobq_private.audit_change('queue', 'queue');

create or replace trigger api_key_birth_audit
after insert on jobq_private.api_key
for each row execute function jobq_private.audit_change('create_api_key', 'api_key');

create or replace trigger api_key_audit
after update on jobq_private.api_key
for each row when (new.last_used_at is not distinct from old.last_used_at)
execute function jobq_private.audit_change('revoke_api_key', 'api_key');

create or replace trigger secret_audit
after insert or update on jobq_private.secret
for each row execute function jobq_private.audit_change('put_secret', 'secret');

create or replace trigger secret_end_audit
after delete on jobq_private.secret
for each row execute function jobq_private.audit_change('delete_secret', 'secret');

create or replace trigger queue_grant_audit
after insert on jobq_private.queue_grant
for each row execute function jobq_private.audit_change(
    'grant_queue', 'grantee', 'privilege', 'queue'
);

create or replace trigger queue_grant_end_audit
after delete on jobq_private.queue_grant
for each row execute function jobq_private.audit_change(
    'revoke_queue', 'grantee', 'privilege', 'queue'
);

-- Purpose: what has been noted stays.
-- Invariant: no update, delete or truncate, by anybody; the owner could drop the trigger,
-- but nobody logs in as the owner. Raises: JQ002.
create or replace function jobq_private.guard_audit()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.raise_error('IMMUTABLE', 'audit rows are only ever added');
    return null;
end
$$;

revoke all on function jobq_private.guard_audit from public;

comment on function jobq_private.guard_audit is
'Refuses every change of the audit but an addition.';

create or replace trigger audit_immutable
before update or delete or truncate on jobq_private.audit
for each statement execute function jobq_private.guard_audit();

-- Purpose: note what somebody does to a job, a queue, a key or a secret.
-- Invariant: stands or falls with what it notes, being in the same transaction. The actor
-- is the session's user, whom no caller can forge; the application is only what it says.
-- Raises: nothing.
create or replace function jobq_private.record_audit(
    action text, subject text, reason text default null
)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    insert into jobq_private.audit (action, subject, reason)
    values (record_audit.action, record_audit.subject, record_audit.reason)
$$;

revoke all on function jobq_private.record_audit from public;

comment on function jobq_private.record_audit is
'Notes what somebody does to a job, a queue, a key or a secret.';

-- Purpose: say for whom the rest of this transaction acts, so that the audit can tell:
-- a server in the name of its clients, a tool in the name of a person.
-- Invariant: what the log-in says, and nothing depends on it; the audit notes the log-in
-- beside it. Raises: 22004, 22023.
-- Argument name: the person or client in whose name it acts, 1 to 256 characters.
-- Example: select jobq.act_for('alice@example.org');
create or replace function jobq.act_for(name text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if act_for.name is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'name');
    elsif length(act_for.name) not between 1 and 256 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'name must have 1 to 256 characters'
        );
    end if;
    perform set_config('jobq.acting_for', act_for.name, true);
end
$$;

revoke all on function jobq.act_for from public;
grant execute on function jobq.act_for
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.act_for is
'Says for whom the rest of the transaction acts; the audit notes it beside the log-in.';

-- Purpose: what operators have done, for operators.
-- Invariant: reads only; the table takes nothing but additions.
-- Column action: what was done: cancel, redrive, pause_queue and more.
create or replace view jobq.audit as
select a.audit_id, a.acted_at, a.actor, a.application, a.action, a.subject, a.reason,
    a.acting_for
from jobq_private.audit as a;

revoke all on jobq.audit from public;
grant select on jobq.audit to jobq_operator;

comment on view jobq.audit is
'Who has cancelled or redriven jobs, paused or granted queues, or changed keys and secrets, when and why.';

reset role;

-- Deploy jobq:cron to pg
-- Made by sql/snapshot.py from sql/cron/: edit that.
set local role jobq_owner;

-- Purpose: when the clocks of a zone changed in the 24 hours before an instant.
-- Invariant: pure but for the zone database; the caller knows that there was a change,
-- of 24 hours at most, and halving finds its second. It counts in seconds, because a day
-- of timestamptz is as long as in the session's zone. No SET; all names are qualified.
-- Raises: nothing.
create or replace function jobq_private.cron_change(time_zone text, latest timestamptz)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
as $$
declare
    _high double precision := pg_catalog.floor(pg_catalog.date_part('epoch', latest));
    _low double precision := _high - 86400;
    _middle double precision;
    _at timestamptz;
    _offset interval := (latest at time zone time_zone) - (latest at time zone 'UTC');
begin
    while _high - _low > 1 loop
        _middle := pg_catalog.floor((_low + _high) / 2);
        _at := pg_catalog.to_timestamp(_middle);
        if (_at at time zone time_zone) - (_at at time zone 'UTC') = _offset then
            _high := _middle;
        else
            _low := _middle;
        end if;
    end loop;
    return pg_catalog.to_timestamp(_high);
end
$$;

revoke all on function jobq_private.cron_change from public;

comment on function jobq_private.cron_change is
'Returns the first instant, at most 24 hours before latest, at which a zone has the'
' offset that it has at latest.';

-- Purpose: refuse what is not the IANA name of a zone, or a rule for its changes.
-- Invariant: reads the zone database alone; its EXCEPTION block is why it is not
-- parallel safe.
-- Raises: 22004, 22023, JQ009.

-- PostgreSQL takes more than IANA names: fixed offsets with the sign turned round
-- (UTC+3 is west), any word with a number after it, and abbreviations that hide the
-- summer time of the zone of the same name (CET). None is what a schedule wants.
create or replace function jobq_private.cron_check(
    time_zone text, gap text default 'auto', fold text default 'auto'
)
returns void
language plpgsql
stable
parallel unsafe
security invoker
as $$
declare
    _is_known boolean := time_zone !~* '^(posix|right)/' and (
        time_zone ~* '^(UTC|GMT[+-]?0?|Etc/GMT([+-]?[0-9]|[+-]1[0-2]|-1[34]))$'
        or time_zone ~ '^[A-Za-z_]+(/[A-Za-z_-]+)+$'
        or (time_zone ~ '^[A-Za-z-]+$' and not exists (
            select from pg_catalog.pg_timezone_abbrevs as a
            where a.abbrev = pg_catalog.upper(time_zone)
        ))
    );
begin
    if time_zone is null or gap is null or fold is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'time_zone, gap or fold');
    elsif gap not in ('auto', 'run', 'skip')
        or fold not in ('auto', 'once', 'both')
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT', pg_catalog.format(
            'gap "%s" may be auto, run or skip; fold "%s" may be auto, once or both',
            gap, fold
        ));
    end if;
    begin
        _is_known := _is_known and pg_catalog.now() at time zone time_zone is not null;
    exception when invalid_parameter_value then
        _is_known := false;
    end;
    if not _is_known then
        perform jobq_private.raise_error('INVALID_TIME_ZONE', pg_catalog.format(
            'time zone: "%s" is refused; it may be an IANA name such as UTC,'
            ' Europe/Berlin or America/New_York, no offset and no abbreviation',
            pg_catalog.left(time_zone, 40)
        ));
    end if;
end
$$;

revoke all on function jobq_private.cron_check from public;

comment on function jobq_private.cron_check is
'Refuses a time zone that has no IANA name, and rules that are not known.';

-- Purpose: read the day-of-month field of a cron expression into the parsed form.
-- Invariant: pure; no SET, since each expression costs a call, and all names are
-- qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_day_of_month(
    parsed jobq_private.cron, list text
)
returns jobq_private.cron
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _item text;
    _number integer;
begin
    parsed.days := 0;
    parsed.near_days := 0;
    parsed.last_days := 0;
    parsed.near_last_days := 0;
    foreach _item in array pg_catalog.string_to_array(list, ',') loop
        if _item !~ '[?LW]' then
            parsed.days := parsed.days
                | (jobq_private.cron_range('day-of-month', _item) >> 1);
        elsif _item = '?' and list = '?' then
            parsed.days := (1::bigint << 31) - 1;
        elsif _item ~ '^[0-9]{1,2}W$' then
            _number := jobq_private.cron_number(
                'day-of-month', pg_catalog.rtrim(_item, 'W')
            );
            parsed.near_days := parsed.near_days | (1::bigint << (_number - 1));
        elsif _item ~ '^L(-([12]?[0-9]|30))?W?$' then
            _number := ('0' || pg_catalog.translate(_item, '-LW', ''))::int;
            if pg_catalog.right(_item, 1) = 'W' then
                parsed.near_last_days := parsed.near_last_days
                    | (1::bigint << (30 - _number));
            else
                parsed.last_days := parsed.last_days | (1::bigint << (30 - _number));
            end if;
        else
            perform jobq_private.cron_refuse('day-of-month', _item);
        end if;
    end loop;
    return parsed;
end
$$;

revoke all on function jobq_private.cron_day_of_month from public;

comment on function jobq_private.cron_day_of_month is
'Returns the parsed expression with its day-of-month field filled in from text.';

-- Purpose: read the day-of-week field of a cron expression into the parsed form.
-- Invariant: pure; a plain weekday is five bits, one in each week of a month, MON#2 is
-- one of the five. No SET, since each expression costs a call, and all names are
-- qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_day_of_week(
    parsed jobq_private.cron, list text
)
returns jobq_private.cron
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _item text;
    _weekday integer;
    _nth integer;
begin
    parsed.weekdays := 0;
    parsed.last_weekdays := 0;
    foreach _item in array pg_catalog.string_to_array(list, ',') loop
        if _item ~ '^[0-9A-Z]+#[1-5]$' then
            _weekday := jobq_private.cron_number(
                'day-of-week', pg_catalog.split_part(_item, '#', 1)
            ) % 7;
            _nth := pg_catalog.right(_item, 1)::int;
            parsed.weekdays := parsed.weekdays
                | (1::bigint << (7 * (_nth - 1) + _weekday));
        elsif _item ~ '^([0-7]|[A-Z]{3})L$' then
            _weekday := jobq_private.cron_number(
                'day-of-week', pg_catalog.rtrim(_item, 'L')
            ) % 7;
            parsed.last_weekdays := parsed.last_weekdays | (1::bigint << _weekday);
        elsif _item = '?' and list = '?' then
            parsed.weekdays := (1::bigint << 35) - 1;
        else
            parsed.weekdays := parsed.weekdays
                | 270549121 * jobq_private.cron_range('day-of-week', _item);
        end if;
    end loop;
    return parsed;
end
$$;

revoke all on function jobq_private.cron_day_of_week from public;

comment on function jobq_private.cron_day_of_week is
'Returns the parsed expression with its day-of-week field filled in from text.';

-- Purpose: turn bits that count from Sunday into bits that count from another weekday.
-- Invariant: pure; no SET and language sql, so that the planner puts the expression in
-- place. 270549121 has a bit at the start of each of five weeks: times a pattern of
-- seven bits, it is that pattern in every week.
-- Raises: nothing.
create or replace function jobq_private.cron_rotate(weeks bigint, weekday integer)
returns bigint
language sql
immutable
parallel safe
security invoker
as $$
    select ((weeks >> weekday) & (270549121 * ((1::bigint << (7 - weekday)) - 1)))
        | ((weeks & (270549121 * ((1::bigint << weekday) - 1))) << (7 - weekday))
$$;

revoke all on function jobq_private.cron_rotate from public;

comment on function jobq_private.cron_rotate is
'Returns five weeks of bits, each turned to begin with weekday; Sunday is 0.';

-- Purpose: the days of one month on which a parsed cron expression fires.
-- Invariant: pure; no SET, since each month searched costs a call, and all names are
-- qualified.
-- Raises: nothing.
create or replace function jobq_private.cron_days(
    cron jobq_private.cron, year integer, month integer
)
returns bigint
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _first date := pg_catalog.make_date(year, month, 1);
    _length integer :=
        pg_catalog.make_date(year + month / 12, month % 12 + 1, 1) - _first;
    _weekday integer := pg_catalog.date_part('dow', _first)::int;
    _last bigint := 1::bigint << (_length - 1);
    _month bigint := 2 * _last - 1;
    _days bigint := cron.days | (cron.last_days >> (31 - _length));
    _near bigint := cron.near_days | (cron.near_last_days >> (31 - _length));
    _weekdays bigint := jobq_private.cron_rotate(cron.weekdays, _weekday);
    _sundays bigint;
    _saturdays bigint;
begin
    if _near <> 0 then
        -- Saturday moves to Friday, Sunday to Monday, neither into another month
        _near := _near & _month;
        _sundays := _near & jobq_private.cron_rotate(270549121, _weekday);
        _saturdays := _near & jobq_private.cron_rotate(17315143744, _weekday);
        _days := _days
            | (_near & ~_sundays & ~_saturdays)
            | (_saturdays >> 1) | ((_saturdays & 1) << 2)
            | ((_sundays & ~_last) << 1) | ((_sundays & _last) >> 2);
    end if;
    if cron.last_weekdays <> 0 then
        _weekdays := _weekdays | (
            jobq_private.cron_rotate(cron.last_weekdays, (_weekday + _length) % 7)
            << (_length - 7)
        );
    end if;
    if cron.is_either_day then
        return (_days | _weekdays) & _month;
    end if;
    return _days & _weekdays & _month;
end
$$;

revoke all on function jobq_private.cron_days from public;

comment on function jobq_private.cron_days is
'Returns the days of a month on which an expression fires: bit n is day n + 1.';

-- Purpose: read a field of a cron expression that holds numbers, ranges and steps.
-- Invariant: pure; no SET, since each field costs a call, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_field(field text, list text)
returns bigint
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _bits bigint := 0;
    _item text;
begin
    foreach _item in array pg_catalog.string_to_array(list, ',') loop
        _bits := _bits | jobq_private.cron_range(field, _item);
    end loop;
    return _bits;
end
$$;

revoke all on function jobq_private.cron_field from public;

comment on function jobq_private.cron_field is
'Returns the numbers that a field of a cron expression names, as bits.';

-- Purpose: the first member of a set of numbers kept as bits.
-- Invariant: pure; no SET and language sql, so that the planner puts the expression in
-- place.
-- Raises: nothing.
create or replace function jobq_private.cron_first(bits bigint, start integer)
returns integer
language sql
immutable
parallel safe
security invoker
as $$
    select (
        pg_catalog.ln(nullif((bits >> start) & -(bits >> start), 0)::double precision)
        / 0.693147180559945309
    )::int + start
$$;

revoke all on function jobq_private.cron_first from public;

comment on function jobq_private.cron_first is
'Returns the lowest bit of bits at or above start, or null; for sets below 2^62.';

-- Purpose: the first time of day, from one on, at which a parsed cron expression fires.
-- Invariant: pure; no SET, for it is hot, and all names are qualified.
-- Raises: nothing.
create or replace function jobq_private.cron_time(cron jobq_private.cron, start time)
returns time
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _hour integer := pg_catalog.date_part('hour', start)::int;
    _minute integer := pg_catalog.date_part('minute', start)::int;
    _second integer;
begin
    if cron.hours >> _hour & 1 = 1 then
        if cron.minutes >> _minute & 1 = 1 then
            _second := jobq_private.cron_first(
                cron.seconds, pg_catalog.date_part('second', start)::int
            );
        end if;
        if _second is null then
            _minute := jobq_private.cron_first(cron.minutes, _minute + 1);
        end if;
    else
        _minute := null;
    end if;
    if _minute is null then
        _hour := jobq_private.cron_first(cron.hours, _hour + 1);
        _minute := jobq_private.cron_first(cron.minutes, 0);
    end if;
    return pg_catalog.make_time(
        _hour, _minute, coalesce(_second, jobq_private.cron_first(cron.seconds, 0))
    );
end
$$;

revoke all on function jobq_private.cron_time from public;

comment on function jobq_private.cron_time is
'Returns the first time of day at or after start that an expression names, or null.';

-- Purpose: the first clock reading, from one on, that a cron expression names.
-- Invariant: pure; goes from month to month. Forty years is the longest that a weekday
-- waits for a day of the year (29 February across 2100); the years of a list are all
-- tried. No SET, for it is hot; all names are qualified.
-- Raises: nothing.
create or replace function jobq_private.cron_next_local(
    cron jobq_private.cron, start timestamp
)
returns timestamp
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _time time := jobq_private.cron_time(cron, start::time);
    _year integer := pg_catalog.date_part('year', start)::int;
    _month integer := pg_catalog.date_part('month', start)::int;
    _day integer := pg_catalog.date_part('day', start)::int
        - case when _time is null then 0 else 1 end;
    _last_year integer := case when cron.years is null then _year + 40 else 2199 end;
    _next integer;
begin
    while _year <= _last_year loop
        _next := jobq_private.cron_first(cron.months, _month);
        if _next is null or _year <> all (cron.years) then
            _year := case
                when cron.years is null then _year + 1
                else (select min(y.year) from unnest(cron.years) as y (year)
                    where y.year > _year)
            end;
            _month := 1;
            _day := 0;
            continue;
        elsif _next > _month then
            _month := _next;
            _day := 0;
        end if;
        _day := jobq_private.cron_first(
            jobq_private.cron_days(cron, _year, _month), _day
        );
        if _day is not null then
            return pg_catalog.make_date(_year, _month, _day + 1) + case
                when pg_catalog.make_date(_year, _month, _day + 1) = start::date
                then _time
                else jobq_private.cron_time(cron, time '00:00')
            end;
        end if;
        _month := _month + 1;
        _day := 0;
    end loop;
    return null;
end
$$;

revoke all on function jobq_private.cron_next_local from public;

comment on function jobq_private.cron_next_local is
'Returns the first clock reading at or after start that an expression names, or'
' null.';

-- Purpose: the first firing of a parsed cron expression strictly after an instant.
-- Invariant: pure but for the zone database. A clock reading names one instant, none (a
-- gap) or two (a fold). PostgreSQL reads one in a gap by the offset before it, one in a
-- fold by the offset after it: so _at shows another reading in a gap, and is the second
-- of two in a fold. No SET, for it is hot; all names are qualified.
-- Raises: 22023 for a zone that cron_check did not see.
create or replace function jobq_private.cron_next(
    cron jobq_private.cron,
    time_zone text,
    after timestamptz,
    gap text default 'auto',
    fold text default 'auto'
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
as $$
declare
    _runs boolean := gap = 'run' or (gap = 'auto' and not cron.is_interval);
    _repeats boolean := fold = 'both' or (fold = 'auto' and cron.is_interval);
    _start timestamp := after at time zone time_zone;
    _next timestamp := jobq_private.cron_next_local(
        cron, pg_catalog.date_trunc('second', _start) + interval '1 second'
    );
    _at timestamptz := _start at time zone time_zone;
    _first timestamptz;
    _fold interval;
begin
    if _repeats and _at > after then
        -- the clocks will show this reading again, and then all since the fold began
        _start := jobq_private.cron_change(time_zone, _at) at time zone time_zone;
        _first := jobq_private.cron_next_local(cron, _start) at time zone time_zone;
        if _next >= _start + (_at - after) is not false
            and _first at time zone time_zone < _start + (_at - after)
        then
            return _first;
        end if;
    end if;
    while _next is not null loop
        _at := _next at time zone time_zone;
        if _at at time zone time_zone <> _next then
            _at := jobq_private.cron_change(time_zone, _at);
            exit when _runs;
            _start := _at at time zone time_zone;
        else
            _fold := ((_at - interval '24 hours') at time zone time_zone)
                + interval '24 hours' - _next;
            exit when _fold <= interval '0';
            _first := ((_at at time zone 'UTC') - _fold) at time zone 'UTC';
            exit when _first at time zone time_zone <> _next or (
                _repeats and _first <= after
            );
            if _first > after then
                return _first;
            end if;
            _start := (jobq_private.cron_change(time_zone, _at) at time zone time_zone)
                + _fold;
        end if;
        _next := jobq_private.cron_next_local(cron, _start);
    end loop;
    return case when _next is not null then _at end;
end
$$;

revoke all on function jobq_private.cron_next from public;

comment on function jobq_private.cron_next is
'Returns the first firing strictly after an instant, or null.';

-- Purpose: the last firing of a parsed cron expression in a span of time.
-- Invariant: pure but for the zone database. Halves the span and asks cron_next, so
-- that the cost is the logarithm of the span, not the count of firings in it.
-- Raises: 22023 for a zone that cron_check did not see.
create or replace function jobq_private.cron_last(
    cron jobq_private.cron,
    time_zone text,
    after timestamptz,
    until timestamptz,
    gap text default 'auto',
    fold text default 'auto'
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
as $$
declare
    -- a firing, and an instant with no firing from it to the end
    _found timestamptz := jobq_private.cron_next(cron, time_zone, after, gap, fold);
    _high timestamptz := until;
    _middle timestamptz;
    _next timestamptz;
begin
    if _found > until then
        return null;
    end if;
    while _found < _high loop
        _middle := pg_catalog.to_timestamp(pg_catalog.floor((
            pg_catalog.date_part('epoch', _found) + pg_catalog.date_part('epoch', _high)
        ) / 2));
        _next := jobq_private.cron_next(cron, time_zone, _middle, gap, fold);
        if _next <= until then
            _found := _next;
        else
            _high := _middle;
        end if;
    end loop;
    return _found;
end
$$;

revoke all on function jobq_private.cron_last from public;

comment on function jobq_private.cron_last is
'Returns the last firing after one instant and not after another, or null.';

-- Purpose: read one number or name in a field of a cron expression.
-- Invariant: pure; no SET, since each number costs a call, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_number(field text, word text)
returns integer
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _number integer := case
        when word ~ '^[0-9]{1,4}$' then word::int
        when field = 'month' then pg_catalog.array_position(
            '{JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC}'::text[], word
        )
        when field = 'day-of-week' then pg_catalog.array_position(
            '{SUN,MON,TUE,WED,THU,FRI,SAT}'::text[], word
        ) - 1
    end;
    _fits boolean := case field
        when 'second' then _number <= 59
        when 'minute' then _number <= 59
        when 'hour' then _number <= 23
        when 'day-of-month' then _number between 1 and 31
        when 'month' then _number between 1 and 12
        when 'day-of-week' then _number <= 7
        when 'year' then _number between 1970 and 2199
    end;
begin
    if _fits is not true then
        perform jobq_private.cron_refuse(field, word);
    end if;
    return _number;
end
$$;

revoke all on function jobq_private.cron_number from public;

comment on function jobq_private.cron_number is
'Returns the number that a word means in a field of a cron expression.';

-- Purpose: split a cron expression into its seven fields.
-- Invariant: pure; no SET, since each expression costs a call, and all names are
-- qualified.
-- Raises: 22004, JQ009.
create or replace function jobq_private.cron_split(cron text)
returns text[]
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    -- the C collation, for in Turkish the capital of i is not I
    _text text := pg_catalog.upper(pg_catalog.left(cron, 1001) collate "C");
    _fields text[] := pg_catalog.regexp_split_to_array(
        pg_catalog.btrim(
            case pg_catalog.btrim(_text, E' \t\n\r')
                when '@YEARLY' then '0 0 1 1 *'
                when '@ANNUALLY' then '0 0 1 1 *'
                when '@MONTHLY' then '0 0 1 * *'
                when '@WEEKLY' then '0 0 * * 0'
                when '@DAILY' then '0 0 * * *'
                when '@MIDNIGHT' then '0 0 * * *'
                when '@HOURLY' then '0 * * * *'
                else _text
            end,
            E' \t\n\r'
        ),
        '[ \t\n\r]+'
    );
    _count integer := pg_catalog.cardinality(_fields);
begin
    if cron is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'cron');
    elsif _count not between 5 and 7 or pg_catalog.length(_text) > 1000 then
        perform jobq_private.raise_error('INVALID_CRON', pg_catalog.format(
            'expression: "%s" has %s fields and %s characters; it may have 5, 6 or 7'
            ' fields and 1000 characters',
            pg_catalog.left(cron, 40), _count, pg_catalog.length(cron)
        ));
    end if;
    return case _count
        when 5 then '0'::text || _fields || '*'::text
        when 6 then _fields || '*'::text
        else _fields
    end;
end
$$;

revoke all on function jobq_private.cron_split from public;

comment on function jobq_private.cron_split is
'Returns the seven fields of a cron expression, second first and year last.';

-- Purpose: parse a cron expression into the sets of numbers that cron_next searches.
-- Invariant: pure, so that a schedule may keep the result; no SET, and all names are
-- qualified.
-- Raises: 22004, JQ009.
create or replace function jobq_private.cron_parse(cron text)
returns jobq_private.cron
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _fields text[] := jobq_private.cron_split(cron);
    _parsed jobq_private.cron;
begin
    _parsed.seconds := jobq_private.cron_field('second', _fields[1]);
    _parsed.minutes := jobq_private.cron_field('minute', _fields[2]);
    _parsed.hours := jobq_private.cron_field('hour', _fields[3]);
    _parsed := jobq_private.cron_day_of_month(_parsed, _fields[4]);
    _parsed.months := jobq_private.cron_field('month', _fields[5]);
    _parsed := jobq_private.cron_day_of_week(_parsed, _fields[6]);
    _parsed.years := jobq_private.cron_years(_fields[7]);
    _parsed.is_either_day := _fields[4] !~ '^[*?]' and _fields[6] !~ '^[*?]';
    _parsed.is_interval := _fields[1] like '*%'
        or _fields[2] like '*%'
        or _fields[3] like '*%';
    -- one of the first 28 days, any year: no need to look for a day that exists
    if _parsed.years is null and (
        _parsed.is_either_day
        or _fields[4] in ('*', '?')
        or (_fields[6] in ('*', '?') and _parsed.days & 268435455 <> 0)
    ) then
        return _parsed;
    elsif jobq_private.cron_next_local(_parsed, timestamp '1970-01-01') is null then
        perform jobq_private.raise_error('CRON_NEVER_FIRES', pg_catalog.format(
            'day-of-month "%s", month "%s", day-of-week "%s" and year "%s" have no'
            ' day in common', _fields[4], _fields[5], _fields[6], _fields[7]
        ));
    end if;
    return _parsed;
end
$$;

revoke all on function jobq_private.cron_parse from public;

comment on function jobq_private.cron_parse is
'Returns a cron expression of 5, 6 or 7 fields or an @name, checked and parsed.';

-- Purpose: read *, 5, 1-5, 10/15 or 1-5/2 in a field of a cron expression.
-- Invariant: pure; a range may wrap (FRI-MON, 22-2). A step wider than its field is
-- refused: */90 in the minutes would fire each hour, and nobody who writes it means
-- that. No SET, since each item costs a call, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_range(field text, item text)
returns bigint
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _base integer := case when field in ('day-of-month', 'month') then 1 else 0 end;
    _size integer := case field
        when 'hour' then 24
        when 'day-of-month' then 31
        when 'month' then 12
        when 'day-of-week' then 7
        else 60
    end;
    _span text := pg_catalog.split_part(item, '/', 1);
    _step integer := 1;
    _low integer := _base;
    _high integer := _base + _size - 1;
    _bits bigint := 0;
begin
    if item !~ '^(\*|[0-9A-Z]+(-[0-9A-Z]+)?)(/[0-9]{1,4})?$' then
        perform jobq_private.cron_refuse(field, item);
    elsif _span <> item then
        _step := pg_catalog.split_part(item, '/', 2)::int;
    end if;
    if _step not between 1 and _size then
        perform jobq_private.cron_refuse(field, item);
    end if;
    if _span <> '*' then
        _low := jobq_private.cron_number(field, pg_catalog.split_part(_span, '-', 1));
        if pg_catalog.strpos(_span, '-') > 0 then
            _high := jobq_private.cron_number(
                field, pg_catalog.split_part(_span, '-', 2)
            );
        elsif _span = item then
            _high := _low;
        end if;
        _high := _high + case when _high < _low then _size else 0 end;
    end if;
    for _number in _low.._high by _step loop
        _bits := _bits | (1::bigint << ((_number - _base) % _size + _base));
    end loop;
    return _bits;
end
$$;

revoke all on function jobq_private.cron_range from public;

comment on function jobq_private.cron_range is
'Returns the numbers that one item of a list in a cron field names, as bits.';

-- Purpose: refuse a part of a cron expression, saying what its field may hold.
-- Invariant: always raises; no SET, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_refuse(field text, part text)
returns void
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _allowed text := case field
        when 'hour' then '0-23'
        when 'day-of-month' then '1-31, ?, L, L-3 (days before the last), 15W, LW'
        when 'month' then '1-12 or JAN-DEC'
        when 'day-of-week' then
            '0-7 (0 and 7 are Sunday) or SUN-SAT, ?, 5L (the last), 5#2 (the second)'
        when 'year' then '1970-2199'
        else '0-59'
    end;
begin
    perform jobq_private.raise_error('INVALID_CRON', pg_catalog.format(
        '%s: "%s" is refused; the field may hold %s, and *, lists, ranges and steps',
        field, pg_catalog.left(part, 40), _allowed
    ));
end
$$;

revoke all on function jobq_private.cron_refuse from public;

comment on function jobq_private.cron_refuse is
'Refuses a part of a cron expression that its field may not hold.';

-- Purpose: read the year field of a cron expression.
-- Invariant: pure; years are too many for the bits of a bigint, and rare enough to be a
-- list. No SET, since each expression costs a call, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_years(list text)
returns int[]
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _item text;
    _bounds int[];
    _years int[] := '{}';
begin
    if list = '*' then
        return null;
    end if;
    foreach _item in array pg_catalog.string_to_array(list, ',') loop
        if _item !~ '^(\*|[0-9]+(-[0-9]+)?)(/0*[1-9][0-9]{0,2})?$' then
            perform jobq_private.cron_refuse('year', _item);
        end if;
        select pg_catalog.array_agg(jobq_private.cron_number('year', w.word))
        into _bounds
        from pg_catalog.regexp_split_to_table(
            pg_catalog.replace(pg_catalog.split_part(_item, '/', 1), '*', '1970-2199'),
            '-'
        ) as w (word);
        if _item ~ '^[0-9]+/' then
            _bounds := _bounds || 2199;
        elsif _bounds[1] > _bounds[2] then
            perform jobq_private.cron_refuse('year', _item);
        end if;
        _years := _years || array(
            select pg_catalog.generate_series(
                _bounds[1],
                coalesce(_bounds[2], _bounds[1]),
                coalesce(nullif(pg_catalog.split_part(_item, '/', 2), ''), '1')::int
            )
        );
    end loop;
    return array(select distinct y.year from unnest(_years) as y (year) order by 1);
end
$$;

revoke all on function jobq_private.cron_years from public;

comment on function jobq_private.cron_years is
'Returns the years that a year field names, ascending, or null for all of them.';

-- Purpose: an instant as ISO 8601 has it, with the offset that the clocks of a zone
-- have.
-- Invariant: pure but for the zone database; by UTC where the server no longer knows
-- the zone, so that such a schedule can still be looked at. Raises: nothing.
create or replace function jobq_private.moment_in(moment timestamptz, time_zone text)
returns text
language plpgsql
stable
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _shown timestamp;
    _ahead interval;
begin
    _shown := moment at time zone time_zone;
    _ahead := _shown - (moment at time zone 'UTC');
    return rtrim(rtrim(to_char(_shown, 'YYYY-MM-DD"T"HH24:MI:SS.US'), '0'), '.')
        || case when _ahead < interval '0' then '-' else '+' end
        || left(greatest(_ahead, -_ahead)::text, 5);
exception
    when invalid_parameter_value then
        return jobq_private.moment_in(moment, 'UTC');
end
$$;

revoke all on function jobq_private.moment_in from public;

comment on function jobq_private.moment_in is
'An instant as ISO 8601 has it, with the offset that the clocks of a zone have.';

-- Purpose: refuse a preview that cannot be meant.
-- Invariant: reads nothing. Raises: 22004, 22023.
create or replace function jobq_private.preview_check(ticks integer, after timestamptz)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(ticks, after) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'ticks and after');
    elsif ticks not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'ticks must be from 1 to 1000'
        );
    elsif after not between '1900-01-01 UTC' and '9999-01-01 UTC' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after must be an instant from 1900 to 9998'
        );
    end if;
end
$$;

revoke all on function jobq_private.preview_check from public;

comment on function jobq_private.preview_check is
'Refuses a preview that cannot be meant.';

-- Purpose: the first firing of a cron expression after an instant, in a time zone.
-- Invariant: reads no table and takes no lock.
-- Raises: 22004, 22023, JQ009.
-- Argument after: the answer is strictly later than this instant, from 1900 to 9998.
-- Returns: the firing; null when none is left, which only an expression with a year can
-- come to.
-- Example: select jobq.next_tick('0 9 * * MON', 'Asia/Kolkata');
create or replace function jobq.next_tick(
    cron text,
    time_zone text default 'UTC',
    after timestamptz default now(),
    gap text default 'auto',
    fold text default 'auto'
)
returns timestamptz
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if next_tick.after is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'after');
    elsif next_tick.after not between '1900-01-01 UTC' and '9999-01-01 UTC' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'after is %s; it may be an instant from 1900 to 9998', next_tick.after
        ));
    end if;
    perform jobq_private.cron_check(next_tick.time_zone, next_tick.gap, next_tick.fold);
    return jobq_private.cron_next(
        jobq_private.cron_parse(next_tick.cron),
        next_tick.time_zone,
        next_tick.after,
        next_tick.gap,
        next_tick.fold
    );
end
$$;

revoke all on function jobq.next_tick from public;

grant execute on function jobq.next_tick
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.next_tick is
'Returns the first firing of a cron expression strictly after an instant, by the clocks'
' of a time zone; null when none is left.';

-- Purpose: the next firings of a cron expression, with what the clocks of its zone
-- show.
-- Invariant: reads no table. Raises: 22004, 22023, JQ009.
-- Argument after: the first one is strictly later than this instant, from 1900 to 9998.
-- Example: select * from jobq.preview_cron('30 2 * * *', 'America/New_York', 3);
create or replace function jobq.preview_cron(
    cron text,
    time_zone text default 'UTC',
    ticks integer default 5,
    after timestamptz default now(),
    gap text default 'auto',
    fold text default 'auto'
)
returns table (slot_at timestamptz, local_time timestamp)
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    _parsed jobq_private.cron;
begin
    perform jobq_private.preview_check(ticks, after);
    perform jobq_private.cron_check(time_zone, gap, fold);
    _parsed := jobq_private.cron_parse(cron);
    slot_at := after;
    for _tick in 1 .. ticks loop
        slot_at := jobq_private.cron_next(_parsed, time_zone, slot_at, gap, fold);
        exit when slot_at is null;
        local_time := slot_at at time zone time_zone;
        return next;
    end loop;
end
$$;

revoke all on function jobq.preview_cron from public;
grant execute on function jobq.preview_cron
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.preview_cron is
'Returns the next firings of a cron expression, with what the clocks of its zone show.';

reset role;

-- Deploy jobq:schedule to pg
-- Made by sql/snapshot.py from sql/schedule/: edit that.
set local role jobq_owner;

-- Purpose: a schedule by its name, or one of its versions by its id.
-- Invariant: a name means the newest version, which is the one in force if any is; no
-- name looks like an id. Raises: 22004, JQ007.
create or replace function jobq_private.schedule_find(schedule text)
returns jobq_private.schedule
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _found jobq_private.schedule;
begin
    if schedule_find.schedule is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'schedule');
    elsif schedule_find.schedule ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        select s.* into _found
        from jobq_private.schedule as s
        where s.schedule_id = schedule_find.schedule::uuid;
    else
        select s.* into _found
        from jobq_private.schedule as s
        where s.name = schedule_find.schedule
        order by s.version desc
        limit 1;
    end if;
    if not found then
        perform jobq_private.raise_error('SCHEDULE_NOT_FOUND', format(
            'schedule %s', left(schedule_find.schedule, 128)
        ));
    end if;
    return _found;
end
$$;

revoke all on function jobq_private.schedule_find from public;

comment on function jobq_private.schedule_find is
'Returns a schedule by its name, or one of its versions by its id.';

-- Purpose: the slots of a schedule in a span of the past that no job stands for.
-- Invariant: not those that tick() has yet to take. A job of any version of the schedule
-- stands for its slot, live or archived. Raises: 22023.
create or replace function jobq_private.backfill_slots(
    schedule jobq_private.schedule, since timestamptz, until timestamptz, max_slots integer
)
returns timestamptz[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _until constant timestamptz := least(
        backfill_slots.until, schedule.ends_at, schedule.next_run_at
    );
    _anchor constant timestamptz := coalesce(
        schedule.starts_at, schedule.next_run_at, schedule.last_tick_at, backfill_slots.since
    );
    _slot timestamptz := backfill_slots.since - interval '1 us';
    _slots timestamptz[] := '{}'::timestamptz[];
begin
    loop
        _slot := jobq_private.schedule_next(
            schedule.parsed, schedule.every, schedule.time_zone, schedule.gap,
            schedule.fold, _anchor, _slot
        );
        exit when not coalesce(_slot < _until, false);
        if cardinality(_slots) = max_slots then
            perform jobq_private.raise_error('INVALID_ARGUMENT', format(
                'the span has more than %s slots (max_slots)', max_slots
            ));
        end if;
        _slots := _slots || _slot;
    end loop;
    return array(
        select u.slot_at
        from unnest(_slots) as u (slot_at)
        where u.slot_at not in (
            select j.slot_at
            from jobq_private.schedule as s
            join jobq.job as j on j.schedule_id = s.schedule_id
            where s.name = schedule.name and j.slot_at = any(_slots)
        )
        order by u.slot_at
    );
end
$$;

revoke all on function jobq_private.backfill_slots from public;

comment on function jobq_private.backfill_slots is
'Returns the slots of a schedule in a span of the past that no job stands for.';

-- Purpose: refuse a backfill that cannot be meant.
-- Raises: 22004, 22023, JQ002.
create or replace function jobq_private.check_backfill(
    schedule jobq_private.schedule, since timestamptz, until timestamptz, max_slots integer,
    dry_run boolean, reason text
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem constant text := case
        when not since < until
        then 'since must lie before until'
        when since < '1900-01-01 UTC' or until > clock_timestamp()
        then 'a span lies between 1900 and now; later slots fire by themselves'
        when max_slots not between 1 and 10000
        then 'max_slots must be from 1 to 10000'
        when length(reason) > 512
        then 'reason must have at most 512 characters'
        when schedule.from_completion
        then 'a schedule that counts from completion has no slots in the past'
    end;
begin
    if num_nulls(since, until, max_slots, dry_run) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'since, until, max_slots and dry_run');
    elsif _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    elsif schedule.status = 'retired' then
        perform jobq_private.raise_error('SCHEDULE_RETIRED', format(
            'schedule %s, version %s', schedule.name, schedule.version
        ));
    end if;
end
$$;

revoke all on function jobq_private.check_backfill from public;

comment on function jobq_private.check_backfill is
'Refuses a backfill that cannot be meant.';

-- Purpose: the graph of a schedule as the HTTP API takes and shows it.
-- Invariant: lengths of time are milliseconds; the rest is as it was given. Raises: nothing.
create or replace function jobq_private.graph_document(graph jsonb)
returns jsonb
language sql
stable
strict
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object('jobs', jsonb_agg(
        case
            when n.node ->> 'timeout' is null then n.node - 'timeout'
            else n.node - 'timeout' || jsonb_build_object(
                'timeout_ms',
                jobq_private.milliseconds((n.node ->> 'timeout')::interval)
            )
        end
        order by n.place
    ))
    from jsonb_array_elements(graph_document.graph -> 'jobs')
        with ordinality as n (node, place)
$$;

revoke all on function jobq_private.graph_document from public;

comment on function jobq_private.graph_document is
'The graph of a schedule as the HTTP API takes and shows it.';

-- Purpose: take the slots that are due, and move each schedule to the one after.
-- Invariant: SKIP LOCKED, so no caller waits for another; next_run_at is compared and
-- set, and the jobs are stored by the same transaction, so each slot comes once. Locked
-- by one statement and read by the next: its snapshot has what others have committed
-- until then. Earliest first; what the schedules of one call leave of max_schedules is
-- shared among them for slots that they have missed; one that counts from completion
-- can have missed none. A schedule whose zone is gone is paused. Raises: nothing.
create or replace function jobq_private.schedule_advance(
    max_schedules integer, until timestamptz
)
returns jobq_private.new_job[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _due uuid[];
    _jobs jobq_private.new_job[];
begin
    select array_agg(l.schedule_id) into _due
    from (
        select s.schedule_id
        from jobq_private.schedule as s
        where s.status = 'active' and s.next_run_at <= schedule_advance.until
        order by s.next_run_at
        limit schedule_advance.max_schedules
        for no key update skip locked
    ) as l;
    if _due is null then
        return null;
    end if;

    with planned as materialized (
        select s.schedule_id, s.next_run_at as due_at, p.slots, p.next_run_at, p.problem
        from jobq_private.schedule as s
        cross join lateral jobq_private.schedule_slots(
            s.parsed, s.every, s.time_zone, s.gap, s.fold,
            case when s.from_completion then 'all' else s.missed end, s.catch_up,
            s.ends_at, s.next_run_at, schedule_advance.until,
            case when s.from_completion then 1
                else schedule_advance.max_schedules / cardinality(_due)
            end
        ) as p
        where s.schedule_id = any (_due)
    ),
    advanced as (
        update jobq_private.schedule as s
        set
            next_run_at = case
                when not s.from_completion or p.slots = '{}' then p.next_run_at
            end,
            last_tick_at = coalesce(p.slots[cardinality(p.slots)], s.last_tick_at),
            status = case when p.problem is null then 'active' else 'paused' end,
            paused_at = case when p.problem is not null then now() end,
            pause_reason = p.problem
        from planned as p
        where s.schedule_id = p.schedule_id and s.next_run_at = p.due_at
        returning s.*, p.slots
    )
    select array_agg(row(
        f.ordinal, a.kind, a.payload, a.queue, f.slot_at + random() * a.jitter,
        a.priority, a.max_attempts, a.timeout,
        format('job_%s_%s', a.schedule_id, floor(extract(epoch from f.slot_at) * 1000)),
        case when a.dedup <> 'enqueue' then a.dedup_key end, a.dedup, a.metadata,
        a.schedule_id, f.slot_at, a.concurrency_key, null, null, null, null, null,
        null
    )::jobq_private.new_job) into _jobs
    from (
        select
            g.schedule_id, u.slot_at,
            row_number() over (order by u.slot_at, g.schedule_id)::integer as ordinal
        from advanced as g
        cross join lateral unnest(g.slots) as u (slot_at)
    ) as f
    join advanced as a on a.schedule_id = f.schedule_id;
    return _jobs;
end
$$;

revoke all on function jobq_private.schedule_advance from public;

comment on function jobq_private.schedule_advance is
'Takes the slots that are due, as new jobs, and moves each schedule to the one after.';

-- Purpose: check the definition of a schedule, and fill in what it leaves open.
-- Invariant: what passes here can fire at any later time without another check; two
-- definitions that mean the same become equal. Only the schema of the kind's payload
-- may change afterwards; it then holds for new definitions.
-- Raises: 22004, 22023, JQ001, JQ005, JQ006, JQ009.
-- Never: QUEUE_FULL.
create or replace function jobq_private.schedule_check(given jobq_private.schedule)
returns jobq_private.schedule
language plpgsql
stable
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _set jobq_private.schedule := given;
    _job jobq_private.new_job;
begin
    _set.payload := coalesce(given.payload, '{}');
    _set.metadata := coalesce(given.metadata, '{}');
    _set.from_completion := coalesce(given.from_completion, false);
    _set.time_zone := coalesce(given.time_zone, 'UTC');
    _set.gap := coalesce(given.gap, 'auto');
    _set.fold := coalesce(given.fold, 'auto');
    _set.jitter := coalesce(given.jitter, '0');
    _set.ends_at := nullif(given.ends_at, 'infinity');
    _set.missed := coalesce(
        given.missed, case when given.every is null then 'all' else 'latest' end
    );
    _set.catch_up := coalesce(
        given.catch_up, case when _set.missed = 'none' then interval '1 min' end
    );
    _set.dedup := coalesce(given.dedup, case
        when given.dedup_key is not null
        then (
            select case when s.dedup in ('debounce', 'throttle') then 'skip' else s.dedup end
            from jobq_private.settings_for(given.kind, given.queue) as s
        )
        when given.every is null then 'enqueue'
        else 'skip'
    end);
    _set.dedup_key := case
        when _set.dedup <> 'enqueue' then coalesce(given.dedup_key, given.name)
    end;
    perform jobq_private.schedule_refuse(_set);

    _set.every := make_interval(
        secs => extract(epoch from given.every)::double precision
    );
    _set.parsed := null;
    if given.cron is not null then
        _set.cron := regexp_replace(btrim(given.cron), '\s+', ' ', 'g');
        _set.parsed := jobq_private.cron_parse(given.cron);
    end if;
    _job.ordinal := 1;
    _job.kind := _set.kind;
    _job.payload := _set.payload;
    _job.queue := _set.queue;
    _job.priority := _set.priority;
    _job.max_attempts := _set.max_attempts;
    _job.timeout := _set.timeout;
    _job.dedup_key := _set.dedup_key;
    _job.concurrency_key := _set.concurrency_key;
    _job.metadata := _set.metadata;
    _job.schedule_id := jobq_private.id_floor('epoch');
    perform jobq_private.check_new_jobs(array[_job]);
    perform jobq_private.check_payload_schemas(array[_job]);
    if given.graph is not null then
        perform jobq_private.check_graph(given.graph, given.kind);
    end if;
    return _set;
end
$$;

revoke all on function jobq_private.schedule_check from public;

comment on function jobq_private.schedule_check is
'Checks the definition of a schedule, and fills in what it leaves open.';

-- Purpose: make a definition the one in force under its name: nothing when it is
-- already, else a new version that takes over from the old. With keeps, a version in
-- force stays, whatever it says.
-- Invariant: who changes a name holds the row of its newest version, as does tick(); so
-- a slot in the making goes to one version. Unique keys decide between callers that see
-- none, or one that is retired by then; the next look has a new snapshot. Locks are "no
-- key update": a caller may hold an older version, to which foreign keys refer. The new
-- version goes on where the old one is: at its next slot if the timing is the same, else
-- at the first of its own that was not yet fired. A pause stays.
-- A name that somebody holds whose schedules the caller may not see is refused.
-- Raises: 22004, 22023, JQ001, JQ004, JQ005, JQ006, JQ009.
create or replace function jobq_private.schedule_declare(
    given jobq_private.schedule, keeps boolean,
    out schedule_id uuid, out created boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _new jobq_private.schedule := jobq_private.schedule_check(given);
    _old jobq_private.schedule;
begin
    for _try in 1 .. 20 loop
        select s.* into _old
        from jobq_private.schedule as s
        where s.name = _new.name
        order by s.version desc
        limit 1
        for no key update;
        if _old.status <> 'retired' and (
            schedule_declare.keeps
            or jobq_private.schedule_definition(_old)
            = jobq_private.schedule_definition(_new)
        ) then
            schedule_id := _old.schedule_id;
            created := false;
            return;
        end if;

        _new := jobq_private.schedule_succeed(_new, _old);
        update jobq_private.schedule as s
        set
            status = 'retired', retired_at = now(), next_run_at = null,
            awaited_job_id = null
        where s.schedule_id = _old.schedule_id and s.status <> 'retired';
        insert into jobq_private.schedule select _new.* on conflict do nothing;
        created := found;
        exit when created;
    end loop;
    if not created then
        perform jobq_private.raise_error('DEFINITION_EXISTS', format(
            'schedule %s', _new.name
        ));
    end if;
    update jobq_private.schedule as s
    set replaced_by_id = _new.schedule_id
    where s.schedule_id = _old.schedule_id;
    schedule_id := _new.schedule_id;
end
$$;

revoke all on function jobq_private.schedule_declare from public;

comment on function jobq_private.schedule_declare is
'Makes a definition the one in force under its name, and returns its version''s id and whether it is new.';

-- Purpose: what of a schedule its author declares, for comparison.
-- Invariant: reads nothing; the parsed form follows from the expression. Raises:
-- nothing.
create or replace function jobq_private.schedule_definition(
    schedule jobq_private.schedule
)
returns jsonb
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select to_jsonb(schedule) - array[
        'schedule_id', 'version', 'previous_version_id', 'replaced_by_id', 'status',
        'parsed', 'next_run_at', 'awaited_job_id', 'last_tick_at', 'paused_at',
        'pause_reason', 'region', 'created_at', 'retired_at'
    ]
$$;

revoke all on function jobq_private.schedule_definition from public;

comment on function jobq_private.schedule_definition is
'Returns what of a schedule its author declares.';

-- Purpose: a schedule as the HTTP API shows it, where it is a job that fires by cron.
-- Invariant: the two next instants are shown by the clocks of its zone, while the
-- server knows it. Payload passes as it is stored. Raises: 22023.
create or replace function jobq_private.schedule_document(
    schedule jobq_private.schedule, vocabulary text default null
)
returns json
language plpgsql
stable
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return json_build_object(
        'job_id', schedule.schedule_id,
        'endpoint', schedule.kind,
        'endpoint_type', (
            select e.type from jobq_private.endpoint as e where e.endpoint = schedule.kind
        ),
        'trigger', 'CRON',
        'status', upper(schedule.status),
        'version', schedule.version,
        'previous_version_id', schedule.previous_version_id,
        'replaced_by_id', schedule.replaced_by_id,
        'name', schedule.name,
        'cron', schedule.cron,
        'every_ms', jobq_private.milliseconds(schedule.every),
        'from_completion', schedule.from_completion,
        'timezone', schedule.time_zone,
        'gap', schedule.gap,
        'fold', schedule.fold,
        'missed', schedule.missed,
        'catch_up_ms', jobq_private.milliseconds(schedule.catch_up),
        'dedup', schedule.dedup,
        'dedup_key', schedule.dedup_key,
        'concurrency_key', schedule.concurrency_key,
        'jitter_ms', jobq_private.milliseconds(schedule.jitter),
        'starts_at', coalesce(schedule.starts_at, schedule.created_at),
        'ends_at', schedule.ends_at,
        'next_run_at', jobq_private.moment_in(
            case when schedule.status = 'active' then schedule.next_run_at end,
            schedule.time_zone
        ),
        'last_tick_at', jobq_private.moment_in(
            schedule.last_tick_at, schedule.time_zone
        ),
        jobq_private.payload_name(vocabulary), schedule.payload,
        'kind', schedule.kind,
        'queue', schedule.queue,
        'metadata', schedule.metadata,
        'graph', jobq_private.graph_document(schedule.graph),
        'priority', schedule.priority,
        'max_attempts', schedule.max_attempts,
        'timeout_ms', jobq_private.milliseconds(schedule.timeout),
        'paused_at', schedule.paused_at,
        'pause_reason', schedule.pause_reason,
        'region', schedule.region,
        'created_at', schedule.created_at,
        'retired_at', schedule.retired_at
    );
end
$$;

revoke all on function jobq_private.schedule_document from public;

comment on function jobq_private.schedule_document is
'A schedule as the HTTP API shows it.';

-- Purpose: a page of the executions of a schedule's version, by slot, the newest first.
-- Invariant: one descent of the index on schedules for each partition. The cursor is the
-- slot itself, so that it holds when its execution is past retention. A slot that the
-- overlap rule gave to another job has none. Raises: nothing.
create or replace function jobq_private.schedule_executions(
    schedule_id uuid, before timestamptz, max_executions integer
)
returns table (item json, cursor timestamptz)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    return query
    select
        jobq_private.execution_document(p.job),
        case when p.n < count(*) over () then (p.job).slot_at end
    from (
        select j as job, row_number() over (order by j.slot_at desc) as n
        from jobq.job as j
        where j.schedule_id = schedule_executions.schedule_id
        and j.slot_at < coalesce(schedule_executions.before, 'infinity')
        order by j.slot_at desc
        limit schedule_executions.max_executions + 1
    ) as p
    order by p.n
    limit schedule_executions.max_executions;
end
$$;

revoke all on function jobq_private.schedule_executions from public;

comment on function jobq_private.schedule_executions is
'Returns a page of the executions of a schedule''s version, the newest first.';

-- Purpose: store the jobs of slots that were taken, by the overlap rule of each.
-- Invariant: the checks were made when the schedule was declared, and are not repeated:
-- a slot that could be refused would be lost, or hold up all others. One statement
-- finds the slots that are to be skipped, one stores the first of each key and all that
-- may overlap; what is left goes in one by one, in the order of keys.
-- Raises: JQ004.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP,
-- PAYLOAD_INVALID, QUEUE_FULL, JOB_NOT_FOUND, BATCH_NOT_FOUND, ILLEGAL_STATE.
create or replace function jobq_private.schedule_fire(jobs jobq_private.new_job[])
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _ordinals integer[];
    _ids uuid[];
    _done integer[];
    _job jobq_private.new_job;
begin
    select array_agg(j.ordinal), array_agg(l.job_id) into _ordinals, _ids
    from unnest(schedule_fire.jobs) as j
    join jobq_private.job as l on l.kind = j.kind and l.dedup_key = j.dedup_key
    where j.dedup = 'skip' and l.dedup is not null;
    return query
    select s.ordinal, s.job_id, false
    from unnest(_ordinals, _ids) as s (ordinal, job_id);
    _done := coalesce(_ordinals, '{}');

    select array_agg(s.ordinal), array_agg(s.job_id) into _ordinals, _ids
    from jobq_private.schedule_store((
        select array_agg(f.job)
        from (
            select j as job, j.dedup_key, j.ordinal, row_number() over (
                partition by j.kind, j.dedup_key order by j.ordinal
            ) as place
            from unnest(schedule_fire.jobs) as j
        ) as f
        where (f.dedup_key is null or f.place = 1)
        and f.ordinal not in (select d.ordinal from unnest(_done) as d (ordinal))
    )) as s;
    return query
    select s.ordinal, s.job_id, true
    from unnest(_ordinals, _ids) as s (ordinal, job_id);
    _done := _done || _ordinals;

    for _job in
        select j.*
        from unnest(schedule_fire.jobs) as j
        where j.ordinal not in (select d.ordinal from unnest(_done) as d (ordinal))
        order by j.kind, j.dedup_key, j.ordinal
    loop
        return query
        select _job.ordinal, s.job_id, s.created
        from jobq_private.store_job(_job) as s;
    end loop;
end
$$;

revoke all on function jobq_private.schedule_fire from public;

comment on function jobq_private.schedule_fire is
'Stores the jobs of slots that were taken, by the overlap rule of each.';

-- Purpose: the first slot of a schedule strictly after an instant. A fixed rate counts
-- from anchor, which is any of its slots.
-- Invariant: pure but for the zone database. An interval holds seconds alone, so a slot
-- depends on no zone; numeric arithmetic, so none drifts. Raises: 22023 for a zone that
-- the server no longer knows.
create or replace function jobq_private.schedule_next(
    cron jobq_private.cron,
    every interval,
    time_zone text,
    gap text,
    fold text,
    anchor timestamptz,
    after timestamptz
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if every is null then
        return jobq_private.cron_next(cron, time_zone, after, gap, fold);
    elsif anchor = after then
        return anchor + every;
    end if;
    return anchor + every * (floor(
        extract(epoch from after - anchor) / extract(epoch from every)
    ) + 1)::double precision;
end
$$;

revoke all on function jobq_private.schedule_next from public;

comment on function jobq_private.schedule_next is
'Returns the first slot of a schedule strictly after an instant, or null.';

-- Purpose: the first slot of a schedule strictly after an instant, and within its
-- bounds.
-- Invariant: a fixed rate counts from starts_at, else from the slot that it had next,
-- else from the instant. Raises: 22023 for a zone that the server no longer knows.
create or replace function jobq_private.schedule_first(
    schedule jobq_private.schedule, after timestamptz
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _after constant timestamptz := greatest(
        schedule_first.after, schedule.starts_at - interval '1 us'
    );
    _first constant timestamptz := jobq_private.schedule_next(
        schedule.parsed, schedule.every, schedule.time_zone, schedule.gap,
        schedule.fold,
        coalesce(schedule.starts_at, schedule.next_run_at, _after), _after
    );
begin
    return case when _first < coalesce(schedule.ends_at, 'infinity') then _first end;
end
$$;

revoke all on function jobq_private.schedule_first from public;

comment on function jobq_private.schedule_first is
'Returns the first slot of a schedule strictly after an instant and within its bounds, or null.';

-- Purpose: set the next slot of schedules that count from the completion of their last
-- job, once that job has ended.
-- Invariant: one statement sees a job in either the live table or the archive; a job
-- that is in neither has ended long ago. SKIP LOCKED. Raises: nothing.
create or replace function jobq_private.schedule_follow(max_schedules integer)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    with ended as materialized (
        select s.schedule_id, s.awaited_job_id
        from jobq_private.schedule as s
        where s.status = 'active' and s.awaited_job_id is not null
        and not exists (
            select from jobq_private.job as j where j.job_id = s.awaited_job_id
        )
        limit schedule_follow.max_schedules
        for no key update skip locked
    ),
    timed as materialized (
        select e.schedule_id, coalesce((
            select max(a.finished_at)
            from jobq_private.job_archive as a
            where a.job_id = e.awaited_job_id
            and a.finished_at >= jobq_private.id_time(e.awaited_job_id)
        ), now()) as finished_at
        from ended as e
    )
    update jobq_private.schedule as s
    set
        awaited_job_id = null,
        next_run_at = case
            when t.finished_at + s.every < coalesce(s.ends_at, 'infinity')
            then greatest(t.finished_at, s.last_tick_at) + s.every
        end
    from timed as t
    where s.schedule_id = t.schedule_id and s.awaited_job_id is not null;
end
$$;

revoke all on function jobq_private.schedule_follow from public;

comment on function jobq_private.schedule_follow is
'Sets the next slot of schedules whose awaited job has ended.';

-- Purpose: a schedule by name or id, held by this transaction so that it can be
-- changed.
-- Invariant: a name yields its newest version, also when another transaction makes one
-- while this one waits: whoever makes one holds the row of the version before it.
-- Raises: 22004, JQ007.
create or replace function jobq_private.schedule_hold(schedule text)
returns jobq_private.schedule
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _found jobq_private.schedule;
    _held jobq_private.schedule;
begin
    loop
        _found := jobq_private.schedule_find(schedule_hold.schedule);
        exit when _found.schedule_id = _held.schedule_id;
        select s.* into _held
        from jobq_private.schedule as s
        where s.schedule_id = _found.schedule_id
        for no key update;
    end loop;
    return _held;
end
$$;

revoke all on function jobq_private.schedule_hold from public;

comment on function jobq_private.schedule_hold is
'Returns a schedule by name or id, held by this transaction.';

-- Purpose: the last slot of a schedule until an instant, given one that is not later.
-- Invariant: its cost does not grow with the number of slots between. Raises: 22023 for
-- a zone that the server no longer knows.
create or replace function jobq_private.schedule_last(
    cron jobq_private.cron,
    every interval,
    time_zone text,
    gap text,
    fold text,
    slot_at timestamptz,
    until timestamptz
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if every is null then
        return coalesce(
            jobq_private.cron_last(cron, time_zone, slot_at, until, gap, fold), slot_at
        );
    end if;
    return slot_at + every * floor(
        extract(epoch from until - slot_at) / extract(epoch from every)
    )::double precision;
end
$$;

revoke all on function jobq_private.schedule_last from public;

comment on function jobq_private.schedule_last is
'Returns the last slot of a schedule until an instant, given one that is not later.';

-- Purpose: the execution of a schedule's version that started last, or null.
-- Invariant: one descent of the index on schedules for each partition; live ones first,
-- for they are the later. Raises: nothing.
create or replace function jobq_private.schedule_last_execution(schedule_id uuid)
returns json
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    return (
        select json_build_object(
            'execution_id', j.job_id,
            'status', jobq_private.execution_status(j.state, j.run_at),
            'started_at', j.claimed_at,
            'completed_at', j.finished_at,
            'attempt_number', j.attempts
        )
        from jobq.job as j
        where j.schedule_id = schedule_last_execution.schedule_id
        and (j.state in ('running', 'retrying') or j.finished_at is not null)
        order by j.slot_at desc
        limit 1
    );
end
$$;

revoke all on function jobq_private.schedule_last_execution from public;

comment on function jobq_private.schedule_last_execution is
'Returns the execution of a schedule''s version that started last, or null.';

-- Purpose: a version of a schedule never changes in what it says; a new version does.
-- Invariant: fires only for an UPDATE that names one of these columns, so no tick pays
-- for it. Raises: JQ002.
create or replace function jobq_private.refuse_schedule_change()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.raise_error('SCHEDULE_IMMUTABLE', format(
        'schedule %s, version %s', old.name, old.version
    ));
    return null;
end
$$;

revoke all on function jobq_private.refuse_schedule_change from public;

comment on function jobq_private.refuse_schedule_change is
'Refuses a change of what a version of a schedule says.';

create or replace trigger schedule_version
before update of
schedule_id, name, version, previous_version_id, kind, queue, payload, metadata,
priority, max_attempts, timeout, cron, parsed, every, from_completion, time_zone, gap,
fold, missed, catch_up, dedup, dedup_key, concurrency_key, graph, jitter, starts_at, ends_at, created_at
on jobq_private.schedule
for each row execute function jobq_private.refuse_schedule_change();

-- Purpose: a schedule only goes forward: its last slot grows, and what is retired stays
-- so.
-- Invariant: with the check that next_run_at lies behind last_tick_at, no slot can be
-- set to fire again, whoever asks. A retired row takes the id of its successor, once.
-- Raises: JQ002.
create or replace trigger schedule_progress
before update on jobq_private.schedule
for each row
when (
    new.last_tick_at is distinct from greatest(new.last_tick_at, old.last_tick_at)
    or (
        old.status = 'retired'
        and (new.status <> 'retired' or old.replaced_by_id is not null)
    )
)
execute function jobq_private.refuse_schedule_change();

-- Purpose: refuse the definition of a schedule that cannot be meant.
-- Invariant: reads the zone database alone; what a job has too is checked as a job's.
-- Raises: 22004, 22023, JQ009.
create or replace function jobq_private.schedule_refuse(given jobq_private.schedule)
returns void
language plpgsql
stable
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem constant text := case
        when length(given.name) not between 1 and 128
            or given.name ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
        then 'name must have 1 to 128 characters, and not be a UUID'
        when num_nonnulls(given.cron, given.every) <> 1
        then 'one of cron and every must be given'
        when given.from_completion and given.every is null
        then 'from_completion needs every, not cron'
        when given.every not between '1 s' and '3660 days'
            or extract(month from given.every) <> 0
            or extract(year from given.every) <> 0
        then 'every must be from 1 s to 3660 days, without months; for those use cron'
        when given.missed not in ('all', 'latest', 'none')
        then 'missed must be all, latest or none'
        when given.catch_up not between '1 s' and '3660 days'
        then 'catch_up must be from 1 s to 3660 days'
        when given.dedup not in ('skip', 'enqueue', 'replace')
        then 'dedup must be skip, enqueue or replace'
        when given.jitter not between '0' and '1 day'
        then 'jitter must be from 0 to 1 day'
        when given.starts_at not between '1900-01-01 UTC' and '9999-01-01 UTC'
            or given.ends_at not between '1900-01-01 UTC' and '9999-01-01 UTC'
        then 'starts_at and ends_at must be instants from 1900 to 9998'
        when given.starts_at >= given.ends_at
        then 'starts_at must lie before ends_at'
    end;
begin
    if given.name is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'name');
    elsif _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;
    perform jobq_private.cron_check(given.time_zone, given.gap, given.fold);
end
$$;

revoke all on function jobq_private.schedule_refuse from public;

comment on function jobq_private.schedule_refuse is
'Refuses the definition of a schedule that cannot be meant.';

-- Purpose: which slots of a due schedule fire now, and which one comes after them.
-- Invariant: at most max_slots; the next is counted from the slot that fires, not from
-- now, so a schedule that was left alone for long catches up call by call. Policy none
-- is latest with a catch-up window of its own. Takes columns and not the row, whose
-- payload would be read for it. A zone that the server no longer knows is told, so that
-- one schedule does not hold up all others. Raises: nothing.
create or replace function jobq_private.schedule_slots(
    cron jobq_private.cron,
    every interval,
    time_zone text,
    gap text,
    fold text,
    missed text,
    catch_up interval,
    ends_at timestamptz,
    due_at timestamptz,
    until timestamptz,
    max_slots integer,
    out slots timestamptz[],
    out next_run_at timestamptz,
    out problem text
)
language plpgsql
stable
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _end constant timestamptz := coalesce(schedule_slots.ends_at, 'infinity');
    _oldest constant timestamptz := coalesce(until - catch_up, '-infinity');
begin
    slots := '{}';
    next_run_at := due_at;
    if missed <> 'all' then
        next_run_at := jobq_private.schedule_last(
            cron, every, time_zone, gap, fold, due_at,
            least(until, _end - interval '1 us')
        );
    end if;
    if next_run_at < _oldest then
        next_run_at := jobq_private.schedule_next(
            cron, every, time_zone, gap, fold, next_run_at, case
                when missed = 'all' then _oldest - interval '1 us' else until
            end
        );
    end if;
    while next_run_at <= until and next_run_at < _end
        and cardinality(slots) < max_slots
    loop
        slots := slots || next_run_at;
        next_run_at := jobq_private.schedule_next(
            cron, every, time_zone, gap, fold, next_run_at, next_run_at
        );
    end loop;
    next_run_at := case when next_run_at < _end then next_run_at end;
exception
    when invalid_parameter_value then
        slots := '{}';
        next_run_at := due_at;
        problem := sqlerrm;
end
$$;

revoke all on function jobq_private.schedule_slots from public;

comment on function jobq_private.schedule_slots is
'Tells which slots of a due schedule fire now, and which one comes after them.';

-- Purpose: how the executions of a schedule's version went that ended in the last 24
-- hours.
-- Invariant: reads the partitions of two days, by the index on schedules. Cancelled
-- ones are left out: they say nothing of the work. Raises: nothing.
create or replace function jobq_private.schedule_statistics(
    schedule_id uuid, out total bigint, out succeeded bigint, out failed bigint,
    out avg_duration_ms bigint, out p99_duration_ms bigint
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    select
        count(*), count(*) filter (where a.state = 'succeeded'),
        count(*) filter (where a.state = 'dead'),
        jobq_private.milliseconds(avg(a.finished_at - a.claimed_at)),
        jobq_private.milliseconds(
            percentile_disc(0.99) within group (order by a.finished_at - a.claimed_at)
        )
    into total, succeeded, failed, avg_duration_ms, p99_duration_ms
    from jobq_private.job_archive as a
    where a.schedule_id = schedule_statistics.schedule_id
    and a.finished_at >= now() - interval '24 hours'
    and a.state in ('succeeded', 'dead');
end
$$;

revoke all on function jobq_private.schedule_statistics from public;

comment on function jobq_private.schedule_statistics is
'Tells how the executions of a schedule''s version went that ended in the last 24 hours.';

-- Purpose: insert the jobs of slots by one statement, but for those whose dedup key a
-- live job holds.
-- Invariant: unique indexes alone decide between concurrent callers; in the order of
-- keys, so that batches cannot deadlock on them. Returns what was stored. Raises:
-- nothing.
create or replace function jobq_private.schedule_store(jobs jobq_private.new_job[])
returns table (ordinal integer, job_id uuid)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _ids constant uuid[] := array(
        select jobq_private.new_id() from unnest(schedule_store.jobs)
    );
    _stored uuid[];
    _queues text[];
    _has_keys boolean;
begin
    with stored as (
        insert into jobq_private.job as j (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            idempotency_key, dedup_key, dedup, metadata, schedule_id, slot_at,
            delivery_version, concurrency_key, lane_id, expires_at, keep
        )
        select
            r.job_id, r.kind, r.payload, r.queue, r.run_at, r.priority, r.max_attempts,
            r.timeout, r.lease, r.idempotency_key, r.dedup_key, r.dedup, r.metadata,
            r.schedule_id, r.slot_at, r.delivery_version, r.concurrency_key, r.lane_id,
            r.expires_at, r.keep
        from jobq_private.job_rows(schedule_store.jobs, _ids) as r
        order by r.kind, r.dedup_key, r.job_id
        on conflict (kind, dedup_key, (case when dedup is null then job_id end))
        where dedup_key is not null do nothing
        returning j.job_id, j.queue, j.run_at, j.lane_id
    )
    select
        array_agg(s.job_id),
        array_agg(distinct s.queue) filter (where s.run_at < now() + interval '60 s'),
        bool_or(s.lane_id is not null)
    into _stored, _queues, _has_keys
    from stored as s;

    if _has_keys then
        perform jobq_private.call_lanes(_stored);
    end if;
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
    return query
    select j.ordinal, _ids[j.ordinality]
    from unnest(schedule_store.jobs) with ordinality as j
    where _ids[j.ordinality] = any (_stored);
end
$$;

revoke all on function jobq_private.schedule_store from public;

comment on function jobq_private.schedule_store is
'Inserts the jobs of slots, but for those whose dedup key a live job holds, and wakes their queues.';

-- Purpose: a new version of a schedule, and where it starts, given the one before it,
-- if any.
-- Invariant: no slot is lost between the two, none fires in both: last_tick_at goes on,
-- and a slot that was due before the change is still due, if the new calendar has it
-- too. Raises: nothing.
create or replace function jobq_private.schedule_succeed(
    new jobq_private.schedule, old jobq_private.schedule
)
returns jobq_private.schedule
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _next jobq_private.schedule := new;
    _timing constant text[] := array[
        'cron', 'every', 'from_completion', 'time_zone', 'gap', 'fold', 'starts_at',
        'ends_at'
    ];
    _is_alive constant boolean := coalesce(old.status <> 'retired', false);
    _is_same constant boolean := not exists (
        select from unnest(_timing) as t (name)
        where to_jsonb(new) -> t.name is distinct from to_jsonb(old) -> t.name
    );
begin
    _next.schedule_id := jobq_private.new_id();
    _next.version := coalesce(old.version, 0) + 1;
    _next.previous_version_id := old.schedule_id;
    _next.replaced_by_id := null;
    _next.region := 'default';
    _next.created_at := now();
    _next.retired_at := null;
    _next.status := case when _is_alive then old.status else 'active' end;
    _next.paused_at := case when _is_alive then old.paused_at end;
    _next.pause_reason := case when _is_alive then old.pause_reason end;
    _next.last_tick_at := old.last_tick_at;
    _next.next_run_at := case when _is_alive then old.next_run_at end;
    _next.awaited_job_id := case
        when _is_alive and new.from_completion then old.awaited_job_id
    end;
    if not (_is_alive and _is_same) and _next.awaited_job_id is null then
        _next.next_run_at := jobq_private.schedule_first(_next, case
            when old.status = 'active' and old.next_run_at <= clock_timestamp()
            then old.next_run_at - interval '1 us'
            else clock_timestamp()
        end);
    end if;
    return _next;
end
$$;

revoke all on function jobq_private.schedule_succeed from public;

comment on function jobq_private.schedule_succeed is
'Returns a new version of a schedule, with the slot at which it starts.';

-- Purpose: make the jobs of a schedule's slots in a span of the past that did not fire.
-- Invariant: each slot once, also beside tick() and other calls: the schedule's row is held. What
-- is known of a slot is its job, so beyond the retention it counts as not fired. The overlap
-- rule does not hold: each slot has its job, due at once, in the order of the slots. All or
-- none, and none where the span has too many. A paused schedule can be backfilled, and so can
-- a span before its start.
-- Raises: 22004, 22023, JQ002, JQ004, JQ007.
-- Argument since: slots at or after this instant.
-- Argument until: slots before this instant, which is not later than now.
-- Argument max_slots: a span with more slots is refused, 1 to 10000.
-- Argument dry_run: true makes nothing, and returns the slots that would be.
-- Argument reason: why, for the audit; at most 512 characters.
-- Column job_id: the job that was made; null for a dry run.
-- Example: select * from jobq.backfill_schedule('weekly summary', now() - interval '30 days', now(), dry_run => true);
create or replace function jobq.backfill_schedule(
    schedule text,
    since timestamptz,
    until timestamptz,
    max_slots integer default 1000,
    dry_run boolean default false,
    reason text default null
)
returns table (slot_at timestamptz, job_id uuid)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_hold(
        backfill_schedule.schedule
    );
    _slots timestamptz[];
    _jobs jobq_private.new_job[];
begin
    perform jobq_private.check_backfill(
        _found, backfill_schedule.since, backfill_schedule.until, backfill_schedule.max_slots,
        backfill_schedule.dry_run, backfill_schedule.reason
    );
    _slots := jobq_private.backfill_slots(
        _found, backfill_schedule.since, backfill_schedule.until, backfill_schedule.max_slots
    );
    if backfill_schedule.dry_run then
        return query select u, null::uuid from unnest(_slots) as u;
        return;
    end if;
    _jobs := array(
        select row(
            u.n, _found.kind, _found.payload, _found.queue, now(), _found.priority,
            _found.max_attempts, _found.timeout,
            format('job_%s_%s', _found.schedule_id, floor(extract(epoch from u.at) * 1000)),
            null, 'enqueue', _found.metadata, _found.schedule_id, u.at,
            _found.concurrency_key, null, null, null, null, null, null
        )::jobq_private.new_job
        from unnest(_slots) with ordinality as u (at, n)
    );
    for slot_at, job_id in
        select j.slot_at, f.job_id
        from jobq_private.schedule_fire(_jobs) as f
        join unnest(_jobs) as j on j.ordinal = f.ordinal
        order by f.ordinal
    loop
        if _found.graph is not null then
            perform jobq_private.hang_graph(job_id, _found.graph);
        end if;
        return next;
    end loop;
    perform jobq_private.record_audit(
        format('backfill schedule: %s slots', cardinality(_slots)), _found.name,
        backfill_schedule.reason
    );
end
$$;

revoke all on function jobq.backfill_schedule from public;
grant execute on function jobq.backfill_schedule to jobq_operator;

comment on function jobq.backfill_schedule is
'Makes the jobs of a schedule''s slots in a span of the past that did not fire, each once.';

-- Purpose: declare a recurring job under a name; declaring it again is harmless.
-- Invariant: the same definition changes nothing; another one becomes a new version,
-- and the old one history. So every deployment may declare its schedules, all at once
-- too. What is null takes its default, whatever it was before.
-- Raises: 22004, 22023, JQ001, JQ004, JQ005, JQ006, JQ009.
-- Argument name: the schedule's name, 1 to 128 characters, no UUID.
-- Argument kind: the kind of its jobs.
-- Argument payload: the payload of its jobs.
-- Argument queue: the queue of its jobs; null means the kind's, else default.
-- Argument missed: what becomes of slots that were missed: all fire, the latest does,
-- or none; null means all for cron, latest for every.
-- Argument dedup: what becomes of a slot while a job of its key lives: enqueue, skip or
-- replace; null means enqueue for cron, skip for every.
-- Argument dedup_key: the key of its jobs; null means the name.
-- Argument priority: of its jobs; null takes the setting.
-- Argument max_attempts: of its jobs; null takes the setting.
-- Argument timeout: of its jobs; null takes the setting.
-- Argument metadata: of its jobs.
-- Argument graph: a graph as enqueue_graph() takes it, to run after each of its jobs: what
-- has
-- no after waits for that job; null means none.
-- Returns: the id of the version in force.
-- Example: select jobq.create_schedule('daily report', 'report', '0 7 * * *', time_zone => 'Europe/Berlin');
create or replace function jobq.create_schedule(
    name text,
    kind text,
    cron text default null,
    every interval default null,
    time_zone text default 'UTC',
    payload jsonb default '{}',
    queue text default null,
    from_completion boolean default false,
    gap text default 'auto',
    fold text default 'auto',
    missed text default null,
    catch_up interval default null,
    dedup text default null,
    dedup_key text default null,
    jitter interval default '0',
    starts_at timestamptz default null,
    ends_at timestamptz default null,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    metadata jsonb default null,
    concurrency_key text default null,
    graph jsonb default null
)
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _given jobq_private.schedule;
begin
    _given.name := create_schedule.name;
    _given.kind := create_schedule.kind;
    _given.cron := create_schedule.cron;
    _given.every := create_schedule.every;
    _given.time_zone := create_schedule.time_zone;
    _given.payload := create_schedule.payload;
    _given.queue := create_schedule.queue;
    _given.from_completion := create_schedule.from_completion;
    _given.gap := create_schedule.gap;
    _given.fold := create_schedule.fold;
    _given.missed := create_schedule.missed;
    _given.catch_up := create_schedule.catch_up;
    _given.dedup := create_schedule.dedup;
    _given.dedup_key := create_schedule.dedup_key;
    _given.jitter := create_schedule.jitter;
    _given.starts_at := create_schedule.starts_at;
    _given.ends_at := create_schedule.ends_at;
    _given.priority := create_schedule.priority;
    _given.max_attempts := create_schedule.max_attempts;
    _given.timeout := create_schedule.timeout;
    _given.metadata := create_schedule.metadata;
    _given.concurrency_key := create_schedule.concurrency_key;
    _given.graph := create_schedule.graph;
    return (jobq_private.schedule_declare(_given, false)).schedule_id;
end
$$;

revoke all on function jobq.create_schedule from public;
grant execute on function jobq.create_schedule
to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.create_schedule is
'Declares a recurring job under a name, by cron or every, and returns the id of its version: the same for the same definition, else a new one.';

-- Purpose: every version of every schedule, for people.
-- Invariant: reads only; the functions change schedules. Retired versions are history.
-- Column schedule_id: the id of this version.
-- Column name: the schedule's name.
-- Column created_at: when this version was declared.
-- Column graph: the jobs that run after each of its jobs; null for none.
create or replace view jobq.schedule as
select
    s.schedule_id, s.name, s.version, s.status, s.kind, s.queue, s.cron, s.every,
    s.from_completion, s.time_zone, s.gap, s.fold, s.missed, s.catch_up, s.dedup,
    s.dedup_key, s.concurrency_key, s.jitter, s.starts_at, s.ends_at, s.next_run_at, s.last_tick_at,
    s.payload, s.metadata, s.graph, s.priority, s.max_attempts, s.timeout, s.previous_version_id,
    s.replaced_by_id, s.awaited_job_id, s.paused_at, s.pause_reason, s.region,
    s.created_at, s.retired_at
from jobq_private.schedule as s;

revoke all on jobq.schedule from public;
grant select on jobq.schedule to jobq_reader;

comment on view jobq.schedule is
'Every version of every schedule, with its next slot and its last.';

-- Purpose: a schedule by its name, or one of its versions by its id.
-- Invariant: a name means the newest version. Raises: 22004, JQ007.
-- Returns: a row of jobq.schedule.
-- Example: select version, status, next_run_at from jobq.get_schedule('weekly summary');
create or replace function jobq.get_schedule(schedule text)
returns jobq.schedule
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        get_schedule.schedule
    );
    _shown jobq.schedule;
begin
    select v.* into _shown
    from jobq.schedule as v
    where v.schedule_id = _found.schedule_id;
    return _shown;
end
$$;

revoke all on function jobq.get_schedule from public;
grant execute on function jobq.get_schedule
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.get_schedule is
'Returns a schedule by its name, or one of its versions by its id.';

-- Purpose: every version of a schedule, newest first.
-- Invariant: a name's versions are one chain, also across its retirement.
-- Raises: 22004, JQ007.
-- Returns: rows of jobq.schedule.
-- Example: select version, status, cron from jobq.list_schedule_versions('weekly summary');
create or replace function jobq.list_schedule_versions(schedule text)
returns setof jobq.schedule
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        list_schedule_versions.schedule
    );
begin
    return query
    select v.*
    from jobq.schedule as v
    where v.name = _found.name
    order by v.version desc;
end
$$;

revoke all on function jobq.list_schedule_versions from public;
grant execute on function jobq.list_schedule_versions
to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_schedule_versions is
'Returns every version of a schedule, newest first.';

-- Purpose: a page of schedules, newest version first.
-- Invariant: without a status, those in force: active and paused. before is the last id
-- of the page before: ids are ordered by time. Raises: 22004, 22023.
-- Argument status: only these; null means those in force, active and paused.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument before: only versions made before this one: the last id of the page before.
-- Argument max_schedules: at most so many, 1 to 1000.
-- Returns: rows of jobq.schedule.
-- Example: select name, next_run_at from jobq.list_schedules();
create or replace function jobq.list_schedules(
    status text default null,
    kind text default null,
    queue text default null,
    before uuid default null,
    max_schedules integer default 50
)
returns setof jobq.schedule
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if list_schedules.max_schedules is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_schedules');
    elsif list_schedules.max_schedules not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_schedules must be from 1 to 1000'
        );
    elsif list_schedules.status not in ('active', 'paused', 'retired') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'status must be active, paused or retired'
        );
    end if;
    return query
    select v.*
    from jobq.schedule as v
    where (
        v.status = list_schedules.status
        or (list_schedules.status is null and v.status <> 'retired')
    )
    and (list_schedules.kind is null or v.kind = list_schedules.kind)
    and (list_schedules.queue is null or v.queue = list_schedules.queue)
    and (list_schedules.before is null or v.schedule_id < list_schedules.before)
    order by v.schedule_id desc
    limit list_schedules.max_schedules;
end
$$;

revoke all on function jobq.list_schedules from public;
grant execute on function jobq.list_schedules
to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_schedules is
'Returns a page of schedules, newest first: those in force, or those of one status.';

-- Purpose: stop a schedule from firing until it is resumed.
-- Invariant: jobs that it has made go on; pausing it again changes nothing.
-- Raises: 22004, JQ002, JQ007.
-- Example: select jobq.pause_schedule('weekly summary', 'nobody reads it in August');
create or replace function jobq.pause_schedule(schedule text, reason text default null)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _held jobq_private.schedule := jobq_private.schedule_hold(pause_schedule.schedule);
begin
    if _held.status = 'retired' then
        perform jobq_private.raise_error('SCHEDULE_RETIRED', format(
            'schedule %s, version %s', _held.name, _held.version
        ));
    end if;
    update jobq_private.schedule as s
    set
        status = 'paused', paused_at = now(),
        pause_reason = left(pause_schedule.reason, 512)
    where s.schedule_id = _held.schedule_id and s.status = 'active';
end
$$;

revoke all on function jobq.pause_schedule from public;
grant execute on function jobq.pause_schedule to jobq_operator;

comment on function jobq.pause_schedule is
'Stops a schedule from firing until it is resumed.';

-- Purpose: when a schedule will fire next, with what the clocks of its zone show.
-- Invariant: of one that counts from completion only the next slot is known; of one
-- that is paused, the slots that it would have if it were resumed now; of a retired
-- one, none. Jitter is not counted. Raises: 22004, 22023, JQ007.
-- Example: select * from jobq.preview_schedule('weekly summary', 3);
create or replace function jobq.preview_schedule(schedule text, ticks integer default 5)
returns table (slot_at timestamptz, local_time timestamp)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        preview_schedule.schedule
    );
begin
    perform jobq_private.preview_check(ticks, now());
    slot_at := case _found.status
        when 'active' then _found.next_run_at
        when 'paused' then jobq_private.schedule_first(_found, now())
    end;
    for _tick in 1 .. ticks loop
        exit when not coalesce(slot_at < coalesce(_found.ends_at, 'infinity'), false);
        local_time := slot_at at time zone _found.time_zone;
        return next;
        exit when _found.from_completion;
        slot_at := jobq_private.schedule_next(
            _found.parsed, _found.every, _found.time_zone, _found.gap, _found.fold,
            slot_at, slot_at
        );
    end loop;
end
$$;

revoke all on function jobq.preview_schedule from public;
grant execute on function jobq.preview_schedule
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.preview_schedule is
'Returns when a schedule will fire next, with what the clocks of its zone show.';

-- Purpose: let a paused schedule fire again.
-- Invariant: slots that came while it was paused do not fire; a fixed rate keeps its
-- beat. Resuming one that is not paused changes nothing.
-- Raises: 22004, 22023, JQ002, JQ007, JQ009.
-- Example: select jobq.resume_schedule('weekly summary');
create or replace function jobq.resume_schedule(schedule text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _held jobq_private.schedule := jobq_private.schedule_hold(resume_schedule.schedule);
begin
    if _held.status = 'retired' then
        perform jobq_private.raise_error('SCHEDULE_RETIRED', format(
            'schedule %s, version %s', _held.name, _held.version
        ));
    elsif _held.status = 'active' then
        return;
    end if;
    perform jobq_private.cron_check(_held.time_zone, _held.gap, _held.fold);
    update jobq_private.schedule as s
    set
        status = 'active', paused_at = null, pause_reason = null,
        next_run_at = case
            when s.awaited_job_id is null
            then jobq_private.schedule_first(_held, clock_timestamp())
        end
    where s.schedule_id = _held.schedule_id;
end
$$;

revoke all on function jobq.resume_schedule from public;
grant execute on function jobq.resume_schedule to jobq_operator;

comment on function jobq.resume_schedule is
'Lets a paused schedule fire again, from its next slot on.';

-- Purpose: end a schedule.
-- Invariant: it fires no more; jobs that it has made run to their end, and its history
-- stays. Its name may be declared again. Retiring it again changes nothing.
-- Raises: 22004, JQ007.
-- Example: select jobq.retire_schedule('weekly summary');
create or replace function jobq.retire_schedule(schedule text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _held jobq_private.schedule := jobq_private.schedule_hold(retire_schedule.schedule);
begin
    update jobq_private.schedule as s
    set
        status = 'retired', retired_at = now(), next_run_at = null,
        awaited_job_id = null
    where s.schedule_id = _held.schedule_id and s.status <> 'retired';
end
$$;

revoke all on function jobq.retire_schedule from public;
grant execute on function jobq.retire_schedule to jobq_producer, jobq_operator;

comment on function jobq.retire_schedule is
'Ends a schedule; jobs that it has made run to their end.';

-- Purpose: run what a schedule runs once more, now.
-- Invariant: a job of its own, with the schedule's kind, payload, queue and options; it takes
-- no slot, so that the schedule fires as if nobody had asked. While a live job holds the
-- schedule's dedup key, that job is returned. A paused schedule can be run too.
-- Raises: 22004, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010. Never: INVALID_ARGUMENT,
-- JOB_NOT_FOUND, BATCH_NOT_FOUND.
-- Returns: the id of the job.
-- Example: select jobq.run_schedule('weekly summary');
create or replace function jobq.run_schedule(schedule text)
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _found jobq_private.schedule := jobq_private.schedule_find(run_schedule.schedule);
    _job_id uuid;
begin
    if _found.status = 'retired' then
        perform jobq_private.raise_error('SCHEDULE_RETIRED', format(
            'schedule %s, version %s', _found.name, _found.version
        ));
    end if;
    perform jobq_private.record_audit('run schedule', _found.name);
    _job_id := jobq.enqueue(
        _found.kind, _found.payload, _found.queue, null, _found.priority,
        _found.max_attempts, _found.timeout, null, _found.dedup_key,
        case when _found.dedup_key is not null then _found.dedup end, _found.metadata,
        concurrency_key => _found.concurrency_key
    );
    if _found.graph is not null and not exists (
        select from jobq_private.node as n where n.job_id = _job_id
    ) then
        perform jobq_private.hang_graph(_job_id, _found.graph);
    end if;
    return _job_id;
end
$$;

revoke all on function jobq.run_schedule from public;
grant execute on function jobq.run_schedule to jobq_operator;

comment on function jobq.run_schedule is
'Runs what a schedule runs once more, now, and returns the id of the job.';

-- Purpose: how a schedule does, as one document: its last execution, what is under way,
-- and the last 24 hours.
-- Invariant: of one version; a new one starts afresh. HEALTHY below a tenth of
-- failures, FAILING from one half on, DEGRADED between them, IDLE when nothing has
-- ended in a day. Raises: 22004, JQ007.
-- Never: INVALID_ARGUMENT.
-- Returns: a JSON object: health (HEALTHY, DEGRADED, FAILING or IDLE), last_execution,
-- active_executions, cron, stats.last_24h, and what names the version.
-- Example: select jobq.schedule_status('weekly summary') ->> 'health';
create or replace function jobq.schedule_status(schedule text)
returns json
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        schedule_status.schedule
    );
    _document constant json := jobq_private.schedule_document(_found);
    _last_day record;
    _pending bigint;
    _running bigint;
begin
    select s.* into _last_day
    from jobq_private.schedule_statistics(_found.schedule_id) as s;
    select count(*) filter (where j.state <> 'running'),
        count(*) filter (where j.state = 'running')
    into _pending, _running
    from jobq_private.job as j
    where j.schedule_id = _found.schedule_id;

    return json_build_object(
        'job_id', _found.schedule_id,
        'name', _found.name,
        'endpoint', _found.kind,
        'endpoint_type', _document -> 'endpoint_type',
        'trigger', 'CRON',
        'status', _document -> 'status',
        'health', case
            when _last_day.total = 0 then 'IDLE'
            when _last_day.failed * 2 >= _last_day.total then 'FAILING'
            when _last_day.failed * 10 >= _last_day.total then 'DEGRADED'
            else 'HEALTHY'
        end,
        'version', _found.version,
        'last_execution', jobq_private.schedule_last_execution(_found.schedule_id),
        'active_executions', json_build_object(
            'pending', _pending, 'running', _running, 'total', _pending + _running
        ),
        'cron', json_build_object(
            'expression', _found.cron,
            'every_ms', _document -> 'every_ms',
            'next_run_at', _document -> 'next_run_at',
            'last_tick_at', _document -> 'last_tick_at'
        ),
        'stats', json_build_object('last_24h', row_to_json(_last_day))
    );
end
$$;

revoke all on function jobq.schedule_status from public;
grant execute on function jobq.schedule_status
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.schedule_status is
'Returns how a schedule does as a JSON document: health, last execution, what is under way, the last 24 hours.';

-- Purpose: turn the slots that are due into jobs.
-- Invariant: each slot once, however many callers race, and none waits for another; see
-- schedule_advance. At most max_schedules schedules at a call, and as many jobs.
-- Raises: 22004, 22023, JQ004.
-- Argument max_schedules: at most so many schedules, and as many jobs, 1 to 100000.
-- Column job_id: the job that stands for the slot.
-- Column created: false where the overlap rule gave the slot to a job that is still
-- live.
-- Example: select * from jobq.tick();
create or replace function jobq.tick(max_schedules integer default 1000)
returns table (schedule_id uuid, slot_at timestamptz, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _jobs jobq_private.new_job[];
begin
    if tick.max_schedules is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_schedules');
    elsif tick.max_schedules not between 1 and 10000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_schedules must be from 1 to 10000'
        );
    end if;

    perform jobq_private.schedule_follow(tick.max_schedules);
    _jobs := jobq_private.schedule_advance(tick.max_schedules, clock_timestamp());
    if _jobs is null then
        return;
    end if;
    for schedule_id, slot_at, job_id, created in
    with fired as materialized (
        select j.schedule_id, j.slot_at, f.job_id, f.created
        from jobq_private.schedule_fire(_jobs) as f
        join unnest(_jobs) as j on j.ordinal = f.ordinal
    ),
    awaiting as (
        update jobq_private.schedule as s
        set awaited_job_id = f.job_id
        from fired as f
        where s.schedule_id = f.schedule_id and s.from_completion
    )
    select f.schedule_id, f.slot_at, f.job_id, f.created
    from fired as f
    order by f.slot_at, f.schedule_id
    loop
        if created then
            perform jobq_private.hang_graph(job_id, s.graph)
            from jobq_private.schedule as s
            where s.schedule_id = tick.schedule_id and s.graph is not null;
        end if;
        return next;
    end loop;
end
$$;

revoke all on function jobq.tick from public;
grant execute on function jobq.tick to jobq_worker, jobq_operator;

comment on function jobq.tick is
'Turns the slots of schedules that are due into jobs, each once however many callers race.';

-- Purpose: for how long tick() has nothing to do: until the next slot of a schedule.
-- Invariant: a duration by the database's clock; reads one entry of an index. A schedule
-- that counts from completion is not known of before its job has ended and tick() was
-- called. Raises: nothing.
-- Returns: zero or less when a slot is due, null when none is to come.
-- Example: select jobq.tick_in();
create or replace function jobq.tick_in()
returns interval
language sql
volatile
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
    select min(s.next_run_at) - clock_timestamp()
    from jobq_private.schedule as s
    where s.status = 'active' and s.next_run_at is not null
$$;

revoke all on function jobq.tick_in from public;
grant execute on function jobq.tick_in to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.tick_in is
'Returns how long it is until a slot of any schedule is due, or null when none is to come.';

-- Purpose: change a schedule: a new version takes over, and the old one is retired.
-- Invariant: changes is a JSON object with parameters of create_schedule(); what it
-- does not name stays, null means the default. Giving cron takes every away, and the
-- other way round. No change, no new version.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ009.
-- Members changes: create_schedule, but not name
-- Returns: the id of the new version; of the old one when nothing changes.
-- Example: select jobq.update_schedule('weekly summary', '{"cron": "0 10 * * MON"}');
create or replace function jobq.update_schedule(schedule text, changes jsonb)
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _known constant text[] := array[
        'kind', 'cron', 'every', 'time_zone', 'payload', 'queue', 'from_completion',
        'gap', 'fold', 'missed', 'catch_up', 'dedup', 'dedup_key', 'jitter',
        'concurrency_key',
        'starts_at', 'ends_at', 'priority', 'max_attempts', 'timeout', 'metadata',
        'graph'
    ];
    _set jobq_private.schedule;
begin
    if update_schedule.changes is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'changes');
    elsif jsonb_typeof(update_schedule.changes) <> 'object'
        or update_schedule.changes - _known <> '{}'
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'changes must be an object with members among %s', _known
        ));
    end if;

    _set := jobq_private.schedule_hold(update_schedule.schedule);
    if _set.status = 'retired' then
        perform jobq_private.raise_error('SCHEDULE_RETIRED', format(
            'schedule %s, version %s', _set.name, _set.version
        ));
    elsif update_schedule.changes ->> 'cron' is not null then
        _set.every := null;
        _set.from_completion := null;
    elsif update_schedule.changes ->> 'every' is not null then
        _set.cron := null;
    end if;
    return (jobq_private.schedule_declare(
        jsonb_populate_record(_set, update_schedule.changes), false
    )).schedule_id;
end
$$;

revoke all on function jobq.update_schedule from public;
grant execute on function jobq.update_schedule to jobq_producer, jobq_operator;

comment on function jobq.update_schedule is
'Changes what the members of a JSON object name of a schedule, and returns the id of the new version.';

reset role;

-- Deploy jobq:http to pg
-- Made by sql/snapshot.py from sql/http/: edit that.
set local role jobq_owner;

-- Purpose: when the execution that a running job is in began, null while it is in its
-- first attempt: since then its config stays the same.
-- Invariant: attempts that do not count, and those before a redrive, are no part of it.
-- Raises: nothing.
create or replace function jobq_private.execution_started_at(job_id uuid)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _earlier integer;
begin
    select j.attempt - j.uncounted - 1 into _earlier
    from jobq_private.job as j
    where j.job_id = execution_started_at.job_id;

    if coalesce(_earlier, 0) < 1 then
        return null;
    end if;
    return (
        select t.started_at
        from jobq_private.attempt as t
        where t.job_id = execution_started_at.job_id and t.state = 'retrying'
        order by t.attempt desc
        offset _earlier - 1
        limit 1
    );
end
$$;

revoke all on function jobq_private.execution_started_at from public;

comment on function jobq_private.execution_started_at is
'When the execution that a running job is in began, or null in its first attempt.';

-- Purpose: a job's execution as the HTTP API shows it.
-- Invariant: a one-shot job and its execution are one row; the execution of a recurring
-- job names the schedule as its job. Raises: nothing.
create or replace function jobq_private.execution_document(job jobq.job)
returns json
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return json_build_object(
        'execution_id', job.job_id,
        'job_id', coalesce(job.schedule_id, job.job_id),
        'endpoint', job.kind,
        'endpoint_type', jobq_private.endpoint_type(job.kind, job.delivery_version),
        'idempotency_key', job.idempotency_key,
        'status', jobq_private.execution_status(job.state, job.run_at),
        'input', job.payload,
        'output', job.result,
        'attempt_count', job.attempts,
        'max_attempts', job.max_attempts,
        'worker_id', job.worker,
        'run_at', job.run_at,
        'started_at', job.claimed_at,
        'completed_at', job.finished_at,
        'duration_ms', jobq_private.milliseconds(job.finished_at - job.claimed_at),
        'created_at', job.created_at
    );
end
$$;

revoke all on function jobq_private.execution_document from public;

comment on function jobq_private.execution_document is
'A job''s execution as the HTTP API shows it.';

-- Purpose: the name that the HTTP API has for where a job is.
-- Invariant: reads nothing. Raises: nothing.
create or replace function jobq_private.execution_status(state text, run_at timestamptz)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return case state
        when 'blocked' then 'PENDING'
        when 'queued' then case when run_at > clock_timestamp() then 'PENDING' else 'QUEUED' end
        when 'running' then 'RUNNING'
        when 'retrying' then 'RETRYING'
        when 'succeeded' then 'SUCCESS'
        when 'dead' then 'FAILED'
        when 'cancelled' then 'CANCELLED'
    end;
end
$$;

revoke all on function jobq_private.execution_status from public;

comment on function jobq_private.execution_status is
'The HTTP API''s name for a state: PENDING, QUEUED, RUNNING, RETRYING, SUCCESS, FAILED or CANCELLED.';

-- Purpose: whether a job ended as dead or cancelled.
-- Invariant: only the partitions from the day before the id's own time on are looked at.
-- Raises: nothing.
create or replace function jobq_private.has_failed(job_id uuid)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select from jobq_private.job_archive as a
        where a.job_id = has_failed.job_id
        and a.finished_at >= jobq_private.id_time(has_failed.job_id) - interval '1 day'
        and a.state in ('dead', 'cancelled')
    );
end
$$;

revoke all on function jobq_private.has_failed from public;

comment on function jobq_private.has_failed is
'Says whether a job ended as dead or cancelled.';

-- Purpose: a job as the HTTP API shows it.
-- Invariant: one document for the clients of every dialect: kind is endpoint too, and the
-- payload stands there once, under the name of the vocabulary that is asked for, else of
-- the job: input where it is a delivery. Payload and result pass to the last digit.
-- Raises: 22023.
create or replace function jobq_private.job_document(
    job jobq.job, vocabulary text default null
)
returns json
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _endpoint_type text;
begin
    _endpoint_type := jobq_private.endpoint_type(job.kind, job.delivery_version);
    return json_build_object(
        'job_id', job.job_id,
        'endpoint', job.kind,
        'endpoint_type', _endpoint_type,
        'trigger', jobq_private.job_trigger(job),
        'status', case when job.finished_at is null then 'ACTIVE' else 'RETIRED' end,
        'version', 1,
        'idempotency_key', job.idempotency_key,
        jobq_private.payload_name(coalesce(
            job_document.vocabulary,
            case when _endpoint_type is null then 'kind' else 'endpoint' end
        )), job.payload,
        'execution', json_build_object(
            'execution_id', job.job_id,
            'status', jobq_private.execution_status(job.state, job.run_at),
            'created_at', job.created_at
        ),
        'created_at', job.created_at,
        'kind', job.kind,
        'queue', job.queue,
        'state', job.state,
        'metadata', job.metadata,
        'dedup_key', job.dedup_key,
        'concurrency_key', job.concurrency_key,
        'expires_at', job.expires_at,
        'priority', job.priority,
        'attempt', job.attempt,
        'attempts', job.attempts,
        'max_attempts', job.max_attempts,
        'timeout_ms', jobq_private.milliseconds(job.timeout),
        'run_at', job.run_at,
        'worker', job.worker,
        'started_at', job.claimed_at,
        'heartbeat_at', job.heartbeat_at,
        'lease_expires_at', job.lease_expires_at,
        'finished_at', job.finished_at,
        'updated_at', job.updated_at,
        'cancel_requested', job.cancel_requested_at is not null,
        'cancel_reason', job.cancel_reason,
        'progress', job.progress,
        'result', job.result,
        'last_error_code', job.last_error_code,
        'last_error', job.last_error,
        'schedule_id', job.schedule_id,
        'slot_at', job.slot_at,
        'region', job.region,
        'batch_id', job.batch_id
    );
end
$$;

revoke all on function jobq_private.job_document from public;

comment on function jobq_private.job_document is
'A job as the HTTP API shows it.';

-- Purpose: what made a job run, as the HTTP API calls it: IMMEDIATE, DELAYED or CRON.
-- Invariant: reads nothing; a job that was asked for as DELAYED says so in its metadata,
-- since run_at changes when it retries. Raises: nothing.
create or replace function jobq_private.job_trigger(job jobq.job)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return case
        when job.schedule_id is not null then 'CRON'
        when job.metadata ->> 'trigger' = 'DELAYED' then 'DELAYED'
        when job.run_at > job.created_at and job.last_error is null then 'DELAYED'
        else 'IMMEDIATE'
    end;
end
$$;

revoke all on function jobq_private.job_trigger from public;

comment on function jobq_private.job_trigger is
'What made a job run, as the HTTP API calls it: IMMEDIATE, DELAYED or CRON.';

-- Purpose: the jobs that take places of keys in a queue, for show_queue(): of one lane, or of all.
-- Invariant: a descent of the index of places. Raises: nothing.
create or replace function jobq_private.key_runners(
    queue text, lane_id uuid, max_rows integer
)
returns json
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(json_agg(json_build_object(
        'concurrency_key', r.concurrency_key, 'job_id', r.job_id, 'kind', r.kind,
        'worker', r.worker, 'started_at', r.claimed_at
    ) order by r.claimed_at), '[]')
    from (
        select j.concurrency_key, j.job_id, j.kind, j.worker, j.claimed_at
        from jobq_private.job as j
        where j.queue = key_runners.queue and j.place is not null
        and (key_runners.lane_id is null or j.lane_id = key_runners.lane_id)
        and j.concurrency_key is not null
        limit key_runners.max_rows
    ) as r
$$;

revoke all on function jobq_private.key_runners from public;

comment on function jobq_private.key_runners is
'The jobs that take places of keys in a queue.';

-- Purpose: which dead or cancelled jobs fit a filter, newest first.
-- Invariant: reads the index alone that holds what the filter asks for, where pages are known
-- to be visible to all. Raises: nothing.
-- Argument states: dead, cancelled, or both.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument error_code: only with this code; null means all.
-- Argument since: none made before this one.
-- Argument until: only those made before this one.
-- Argument most: looks at so many at most.
-- Returns: job_ids, of those that fit, newest first; is_cut, whether there are more to look
-- at; last_id, of the last that was looked at, where there are more.
create or replace function jobq_private.look_failed(
    states text[], kind text, queue text, error_code text,
    since uuid, until uuid, most integer,
    out job_ids uuid[], out is_cut boolean, out last_id uuid
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
    select
        array_agg(l.job_id) filter (where l.fits and l.n <= look_failed.most),
        count(*) > look_failed.most,
        (array_agg(l.job_id) filter (where l.n = look_failed.most))[1]
    into look_failed.job_ids, look_failed.is_cut, look_failed.last_id
    from (
        select u.job_id, row_number() over () as n,
            (look_failed.kind is null or u.kind = look_failed.kind)
            and (look_failed.queue is null or u.queue = look_failed.queue)
            and (
                look_failed.error_code is null
                or u.last_error_code is not distinct from look_failed.error_code
            ) as fits
        from (
            (
                select a.job_id, a.kind, a.queue, a.last_error_code
                from jobq_private.job_archive as a
                where 'dead' = any (look_failed.states) and a.state = 'dead'
                and a.job_id < look_failed.until and a.job_id >= look_failed.since
                order by a.job_id desc
                limit look_failed.most + 1
            )
            union all
            (
                select a.job_id, a.kind, a.queue, a.last_error_code
                from jobq_private.job_archive as a
                where 'cancelled' = any (look_failed.states) and a.state = 'cancelled'
                and a.job_id < look_failed.until and a.job_id >= look_failed.since
                order by a.job_id desc
                limit look_failed.most + 1
            )
            order by job_id desc
            limit look_failed.most + 1
        ) as u
    ) as l;
end
$$;

revoke all on function jobq_private.look_failed from public;

comment on function jobq_private.look_failed is
'Returns which dead or cancelled jobs fit a filter.';

-- Purpose: which jobs fit a filter, newest first.
-- Invariant: reads rows by descents of indexes, live ones and archived. Raises: nothing.
-- Argument states: only these.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument metadata: only those whose metadata contain this object; null means all.
-- Argument error_code: only with this code; null means all.
-- Argument worker: only those that this worker runs, or ran last; null means all.
-- Argument since: none made before this one.
-- Argument until: only those made before this one.
-- Argument most: looks at so many at most.
-- Returns: job_ids, of those that fit, newest first; is_cut, whether there are more to look
-- at; last_id, of the last that was looked at, where there are more.
create or replace function jobq_private.look_jobs(
    states text[], kind text, queue text, metadata jsonb, error_code text, worker text,
    since uuid, until uuid, most integer,
    out job_ids uuid[], out is_cut boolean, out last_id uuid
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
    _is_any_end constant boolean := 'succeeded' = any (look_jobs.states);
    _is_live constant boolean := not look_jobs.states <@ '{succeeded,dead,cancelled}'::text[];
    _is_leased constant boolean := look_jobs.states = '{running}';
begin
    select
        array_agg(l.job_id) filter (where l.fits and l.n <= look_jobs.most),
        count(*) > look_jobs.most,
        (array_agg(l.job_id) filter (where l.n = look_jobs.most))[1]
    into look_jobs.job_ids, look_jobs.is_cut, look_jobs.last_id
    from (
        select u.job_id, row_number() over () as n,
            u.state = any (look_jobs.states)
            and (look_jobs.kind is null or u.kind = look_jobs.kind)
            and (look_jobs.queue is null or u.queue = look_jobs.queue)
            and (look_jobs.metadata is null or u.metadata @> look_jobs.metadata)
            and (
                look_jobs.error_code is null
                or u.last_error_code is not distinct from look_jobs.error_code
            )
            and (
                look_jobs.worker is null or u.worker is not distinct from look_jobs.worker
            ) as fits
        from (
            (
                select j.job_id, j.state, j.kind, j.queue, j.metadata,
                    j.last_error_code, j.worker
                from jobq_private.job as j
                where _is_live and not _is_leased
                and j.job_id < look_jobs.until and j.job_id >= look_jobs.since
                order by j.job_id desc
                limit look_jobs.most + 1
            )
            union all
            (
                select j.job_id, j.state, j.kind, j.queue, j.metadata,
                    j.last_error_code, j.worker
                from (
                    select r.*
                    from jobq_private.job as r
                    where _is_leased and r.state = 'running'
                    offset 0
                ) as j
                where j.job_id < look_jobs.until and j.job_id >= look_jobs.since
                order by j.job_id desc
                limit look_jobs.most + 1
            )
            union all
            (
                select a.job_id, a.state, a.kind, a.queue, a.metadata,
                    a.last_error_code, a.worker
                from jobq_private.job_archive as a
                where _is_any_end
                and a.job_id < look_jobs.until and a.job_id >= look_jobs.since
                order by a.job_id desc
                limit look_jobs.most + 1
            )
            union all
            (
                select a.job_id, a.state, a.kind, a.queue, a.metadata,
                    a.last_error_code, a.worker
                from jobq_private.job_archive as a
                where not _is_any_end and 'dead' = any (look_jobs.states) and a.state = 'dead'
                and a.job_id < look_jobs.until and a.job_id >= look_jobs.since
                order by a.job_id desc
                limit look_jobs.most + 1
            )
            union all
            (
                select a.job_id, a.state, a.kind, a.queue, a.metadata,
                    a.last_error_code, a.worker
                from jobq_private.job_archive as a
                where not _is_any_end and 'cancelled' = any (look_jobs.states)
                and a.state = 'cancelled'
                and a.job_id < look_jobs.until and a.job_id >= look_jobs.since
                order by a.job_id desc
                limit look_jobs.most + 1
            )
            order by job_id desc
            limit look_jobs.most + 1
        ) as u
    ) as l;
end
$$;

revoke all on function jobq_private.look_jobs from public;

comment on function jobq_private.look_jobs is
'Returns which jobs fit a filter.';

-- Purpose: which jobs are the newest, of any kind and state.
-- Invariant: reads indexes alone, where pages are known to be visible to all. Raises: nothing.
-- Argument since: none made before this one.
-- Argument until: only those made before this one.
-- Argument most: looks at so many at most.
-- Returns: job_ids, of all that were looked at, newest first; is_cut, whether there are more;
-- last_id, of the last that was looked at, where there are more.
create or replace function jobq_private.look_newest(
    since uuid, until uuid, most integer,
    out job_ids uuid[], out is_cut boolean, out last_id uuid
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
    select array_agg(l.job_id) into look_newest.job_ids
    from (
        (
            select j.job_id from jobq_private.job as j
            where j.job_id < look_newest.until and j.job_id >= look_newest.since
            order by j.job_id desc
            limit look_newest.most + 1
        )
        union all
        (
            select a.job_id from jobq_private.job_archive as a
            where a.job_id < look_newest.until and a.job_id >= look_newest.since
            order by a.job_id desc
            limit look_newest.most + 1
        )
        order by job_id desc
        limit look_newest.most + 1
    ) as l;
    look_newest.is_cut := coalesce(cardinality(look_newest.job_ids) > look_newest.most, false);
    if look_newest.is_cut then
        look_newest.last_id := look_newest.job_ids[look_newest.most];
        look_newest.job_ids := look_newest.job_ids[:look_newest.most];
    end if;
end
$$;

revoke all on function jobq_private.look_newest from public;

comment on function jobq_private.look_newest is
'Returns which jobs are the newest.';

-- Purpose: what a payload is called in a vocabulary: payload in that of kinds, input in that
-- of endpoints, which null means.
-- Invariant: a constant for each. Raises: 22023.
create or replace function jobq_private.payload_name(vocabulary text)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if vocabulary not in ('kind', 'endpoint') then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'vocabulary must be kind or endpoint');
    end if;
    return case vocabulary when 'kind' then 'payload' else 'input' end;
end
$$;

revoke all on function jobq_private.payload_name from public;

comment on function jobq_private.payload_name is
'What a payload is called in a vocabulary: payload or input.';

-- Purpose: who holds the key with this SHA-256, and what it may do; no row when nobody
-- does, or when it has expired or been revoked.
-- Invariant: looked up by the hash of a random key, so the time taken tells nothing of
-- another key. The last use is written at most once a minute, and never waited for.
-- While grants by queue are enforced, a key opens the servers of the log-in that made it.
-- Raises: nothing.
-- Returns: one row; none when nobody holds the key, or when it has expired or been
-- revoked.
-- Column name: the key's name.
-- Example: select * from jobq_http.authenticate(sha256('a key'));
create or replace function jobq_http.authenticate(key_hash bytea)
returns table (name text, scopes text[], requests_per_second integer)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _key jobq_private.api_key;
begin
    select k.* into _key
    from jobq_private.api_key as k
    where k.key_hash = authenticate.key_hash
    and k.revoked_at is null
    and (k.expires_at is null or k.expires_at > clock_timestamp())
    and (k.login = session_user or not row_security_active('jobq_private.api_key'));
    if not found then
        return;
    end if;

    if coalesce(_key.last_used_at, '-infinity') < clock_timestamp() - interval '1 min' then
        update jobq_private.api_key as k
        set last_used_at = clock_timestamp()
        where k.api_key = (
            select u.api_key
            from jobq_private.api_key as u
            where u.api_key = _key.api_key
            for update skip locked
        );
    end if;
    return query select _key.api_key, _key.scopes, _key.requests_per_second;
end
$$;

revoke all on function jobq_http.authenticate from public;
grant execute on function jobq_http.authenticate to jobq_reader;

comment on function jobq_http.authenticate is
'Returns the name and the scopes of the HTTP API key with this SHA-256, or no row.';

-- Purpose: cancel an execution that still waits, and leave it alone when it does not.
-- Invariant: the row lock decides between this and claim; whoever comes second sees what
-- the first has done.
-- Raises: 22004, 22023, JQ001.
-- Argument execution_id: the id of the execution, which is that of its job.
-- Returns: the execution as show_execution() returns it; null when it runs or has
-- ended.
-- Example: select jobq_http.cancel_execution(:'waiting', 'ordered twice');
create or replace function jobq_http.cancel_execution(
    execution_id uuid, reason text default null
)
returns json
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform
    from jobq_private.job as j
    where j.job_id = cancel_execution.execution_id
    and j.state in ('blocked', 'queued', 'retrying')
    for update;
    if found then
        perform jobq.cancel(cancel_execution.execution_id, cancel_execution.reason);
        return jobq_http.show_execution(cancel_execution.execution_id);
    end if;
    perform jobq.get_job(cancel_execution.execution_id);
    return null;
end
$$;

revoke all on function jobq_http.cancel_execution from public;
grant execute on function jobq_http.cancel_execution to jobq_producer, jobq_operator;

comment on function jobq_http.cancel_execution is
'Cancels an execution that still waits and returns it, or null when it is too late.';

-- Purpose: let the holder of a key use the HTTP API, within scopes.
-- Invariant: the database sees the SHA-256 of the key alone; whoever makes it (256 random
-- bits) shows it once. A name is used once, revoked or not, so that logs stay clear.
-- Raises: 22004, 22023, JQ004.
-- Argument name: the key's name, 1 to 128 characters, never used before.
-- Argument prefix: the first letters of the key, to know it by; 1 to 16 characters.
-- Argument requests_per_second: how many requests its holder may make in a second; null
-- means the server's default.
-- Example: select jobq_http.create_api_key('ci', sha256('a key'), 'jobq_a', '{produce,read}');
create or replace function jobq_http.create_api_key(
    name text,
    key_hash bytea,
    prefix text,
    scopes text[],
    expires_at timestamptz default null,
    requests_per_second integer default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _violated text;
begin
    if num_nulls(
        create_api_key.name, create_api_key.key_hash, create_api_key.prefix,
        create_api_key.scopes
    ) > 0 then
        perform jobq_private.raise_error(
            'NULL_ARGUMENT', 'name, key_hash, prefix and scopes'
        );
    end if;
    insert into jobq_private.api_key (
        api_key, key_hash, prefix, scopes, expires_at, requests_per_second
    )
    values (
        create_api_key.name, create_api_key.key_hash, create_api_key.prefix,
        create_api_key.scopes, create_api_key.expires_at,
        create_api_key.requests_per_second
    );
exception
    when unique_violation then
        perform jobq_private.raise_error(
            'API_KEY_EXISTS', format('name %s', create_api_key.name)
        );
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.api_key', _violated);
end
$$;

revoke all on function jobq_http.create_api_key from public;
grant execute on function jobq_http.create_api_key to jobq_operator;

comment on function jobq_http.create_api_key is
'Lets the holder of a key use the HTTP API within scopes: produce, work, operate, read.';

-- Purpose: the keys of the HTTP API, without anything that would let one be used.
-- Invariant: reads only. Raises: nothing.
-- Column name: the key's name.
-- Example: select * from jobq_http.list_api_keys();
create or replace function jobq_http.list_api_keys()
returns table (
    name text,
    prefix text,
    scopes text[],
    requests_per_second integer,
    created_at timestamptz,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        k.api_key, k.prefix, k.scopes, k.requests_per_second, k.created_at,
        k.expires_at, k.revoked_at, k.last_used_at
    from jobq_private.api_key as k
    order by k.created_at, k.api_key
$$;

revoke all on function jobq_http.list_api_keys from public;
grant execute on function jobq_http.list_api_keys to jobq_operator;

comment on function jobq_http.list_api_keys is
'Returns the keys of the HTTP API: names, prefixes, scopes and last use, never a key.';

-- Purpose: a page of the attempts of a job, in their order; cursor as in page_jobs().
-- Invariant: each attempt once; its number is what the next page starts after.
-- Raises: 22004, JQ001.
-- Argument after: only attempts with a higher number; null for the first page.
-- Argument max_attempts: at most so many.
-- Members item: page_attempts
-- Example: select * from jobq_http.page_attempts(:'dead');
create or replace function jobq_http.page_attempts(
    job_id uuid, after integer default null, max_attempts integer default 50
)
returns table (item json, cursor integer)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        json_build_object(
            'attempt_id', format('%s:%s', t.job_id, t.attempt),
            'execution_id', t.job_id,
            'attempt_number', t.attempt,
            'status', case t.state
                when 'succeeded' then 'SUCCESS'
                when 'running' then 'RUNNING'
                when 'cancelled' then 'CANCELLED'
                when 'queued' then 'RELEASED'
                else 'FAILED'
            end,
            'worker_id', t.worker,
            'created_at', t.started_at,
            'started_at', t.started_at,
            'completed_at', t.finished_at,
            'duration_ms', jobq_private.milliseconds(t.duration),
            'output', t.result,
            'error', case
                when coalesce(t.error_code, t.error) is not null then
                    coalesce(t.error_details, '{}')
                    || jsonb_build_object('type', t.error_code, 'message', t.error)
            end
        ),
        case when t.n < t.total then t.attempt end
    from (
        select
            a.*, row_number() over (order by a.attempt) as n, count(*) over () as total
        from jobq.list_attempts(page_attempts.job_id) as a
        where a.attempt > coalesce(page_attempts.after, 0)
    ) as t
    where t.n <= page_attempts.max_attempts
    order by t.n;
end
$$;

revoke all on function jobq_http.page_attempts from public;
grant execute on function jobq_http.page_attempts
to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.page_attempts is
'Returns a page of the attempts of a job as JSON documents, in their order.';

-- Purpose: a page of what operators have done, newest first; cursor as in page_jobs().
-- Invariant: a descent of the primary key; of the newest 20,000 rows those that fit.
-- Raises: 22004, 22023.
-- Argument before: only what came before this row; null for the first page.
-- Argument subject: only what was done to this job, queue or other subject; null means all.
-- Argument max_rows: at most so many, 1 to 1000.
-- Column item: a JSON object: audit_id, acted_at, actor, acting_for, application, action,
-- subject, reason.
-- Example: select * from jobq_http.page_audit();
create or replace function jobq_http.page_audit(
    before bigint default null, subject text default null, max_rows integer default 50
)
returns table (item json, cursor bigint)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
    if page_audit.max_rows is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_rows');
    elsif page_audit.max_rows not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_rows must be from 1 to 1000'
        );
    end if;
    return query
    select
        json_build_object(
            'audit_id', t.audit_id, 'acted_at', t.acted_at, 'actor', t.actor,
            'acting_for', t.acting_for, 'application', t.application,
            'action', t.action, 'subject', t.subject, 'reason', t.reason
        ),
        case when t.n < count(*) over () then t.audit_id end
    from (
        select l.*, row_number() over (order by l.audit_id desc) as n
        from (
            select a.*
            from jobq_private.audit as a
            where page_audit.before is null or a.audit_id < page_audit.before
            order by a.audit_id desc
            limit 20000
        ) as l
        where page_audit.subject is null or l.subject = page_audit.subject
        order by l.audit_id desc
        limit page_audit.max_rows + 1
    ) as t
    order by t.n
    limit page_audit.max_rows;
end
$$;

revoke all on function jobq_http.page_audit from public;
grant execute on function jobq_http.page_audit to jobq_operator;

comment on function jobq_http.page_audit is
'Returns a page of what operators have done as JSON documents, newest first; cursor leads to the next page.';

-- Purpose: a page of the executions of a job, the newest first; cursor is null in the last
-- row of all, else it is what `before` takes for the page that follows that row: its slot.
-- Invariant: a one-shot job has one. A schedule has one for each slot, and pages follow
-- its index. Raises: 22004, JQ001.
-- Argument before: only slots before this one; null for the first page.
-- Argument max_executions: at most so many.
-- Members item: execution_document
-- Example: select * from jobq_http.page_executions(:'waiting');
create or replace function jobq_http.page_executions(
    job_id uuid, before timestamptz default null, max_executions integer default 50
)
returns table (item json, cursor timestamptz)
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from jobq_private.schedule as s
        where s.schedule_id = page_executions.job_id
    ) then
        return query
        select f.item, f.cursor
        from jobq_private.schedule_executions(
            page_executions.job_id, page_executions.before,
            page_executions.max_executions
        ) as f;
        return;
    end if;
    item := jobq_http.show_execution(page_executions.job_id);
    if page_executions.max_executions > 0 and page_executions.before is null then
        return next;
    end if;
end
$$;

revoke all on function jobq_http.page_executions from public;
grant execute on function jobq_http.page_executions
to jobq_producer, jobq_operator, jobq_reader;

comment on function jobq_http.page_executions is
'Returns a page of the executions of a job as JSON documents, the newest first.';

-- Purpose: a page of jobs as documents, newest first; cursor is null in the last row of
-- all, else it is what `before` takes for the page that follows that row. A search that has
-- looked at 100,000 jobs ends with a row whose item is null, if the page is not full.
-- Invariant: ids are ordered by time, so pages stay the same while jobs are added, and
-- each starts with a descent of the primary keys, wherever it lies. The times compare the
-- moment in the id. A page ends early at about 4 MB. Raises: 22004, 22023.
-- Argument states: only these; null means all.
-- Argument created_after: only those made after this instant.
-- Argument created_before: only those made before this instant.
-- Argument metadata: only those whose metadata contain this object.
-- Argument idempotency_key: only those with this key; null means all.
-- Argument trigger: only IMMEDIATE or DELAYED ones, or firings, which are CRON.
-- Argument is_finished: only those that have ended, or have not; null means all.
-- Argument vocabulary: as show_job() has it.
-- Argument before: only jobs made before this one; null for the first page.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument max_jobs: at most so many, 1 to 1000.
-- Members item: job_document
-- Example: select * from jobq_http.page_jobs('{queued,running}', max_jobs => 10);
create or replace function jobq_http.page_jobs(
    states text[] default null,
    kind text default null,
    queue text default null,
    created_after timestamptz default null,
    created_before timestamptz default null,
    metadata jsonb default null,
    before uuid default null,
    max_jobs integer default 50,
    idempotency_key text default null,
    trigger text default null,
    is_finished boolean default null,
    vocabulary text default null
)
returns table (item json, cursor uuid)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _max_bytes constant integer := 4194304;
    _from constant uuid := coalesce(
        jobq_private.id_floor(page_jobs.created_after),
        '00000000-0000-0000-0000-000000000000'
    );
    _to constant uuid := least(
        page_jobs.before, jobq_private.id_floor(page_jobs.created_before),
        'ffffffff-ffff-ffff-ffff-ffffffffffff'
    );
    _states constant text[] := case
        when page_jobs.is_finished is null then page_jobs.states
        else array(
            select s.state
            from unnest(case
                when page_jobs.is_finished then '{succeeded,dead,cancelled}'::text[]
                else '{blocked,queued,running,retrying}'
            end) as s (state)
            where page_jobs.states is null or s.state = any(page_jobs.states)
        )
    end;
    _rows integer := 0;
    _bytes bigint := 0;
    _job jobq.job;
begin
    if page_jobs.max_jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs');
    elsif page_jobs.max_jobs not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_jobs must be from 1 to 1000'
        );
    elsif not page_jobs.states <@ array[
        'blocked', 'queued', 'running', 'retrying', 'succeeded', 'dead', 'cancelled'
    ] then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'states are blocked, queued, running, retrying, succeeded, dead and cancelled');
    end if;

    for _job in
        select s.*
        from jobq_private.search_jobs(
            _states, page_jobs.kind, page_jobs.queue, page_jobs.metadata,
            page_jobs.idempotency_key, page_jobs.trigger, _from, _to, page_jobs.max_jobs + 1
        ) as s
    loop
        if _rows > 0 then
            return next;
            if _rows = page_jobs.max_jobs or _bytes > _max_bytes then
                return;
            end if;
        end if;
        cursor := _job.job_id;
        item := case
            when _job.state is not null
            then jobq_private.job_document(_job, page_jobs.vocabulary)
        end;
        _bytes := _bytes + coalesce(octet_length(item::text), 0);
        _rows := _rows + 1;
    end loop;
    if _rows > 0 then
        cursor := case when item is null then cursor end;
        return next;
    end if;
end
$$;

revoke all on function jobq_http.page_jobs from public;
grant execute on function jobq_http.page_jobs to jobq_operator, jobq_reader;

comment on function jobq_http.page_jobs is
'Returns a page of jobs as JSON documents, newest first; cursor leads to the next page.';

-- Purpose: a page of the log of a job, in its order; cursor as in page_jobs().
-- Invariant: lines are numbered as they are written, so a page that was read stays as it
-- was, and each starts with a descent of the index. Raises: 22004, JQ001.
-- Argument after: only lines after this one; null for the first page.
-- Argument max_lines: at most so many.
-- Members item: page_logs
-- Example: select * from jobq_http.page_logs(:'running');
create or replace function jobq_http.page_logs(
    job_id uuid, after bigint default null, max_lines integer default 50
)
returns table (item json, cursor bigint)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    perform jobq.get_job(page_logs.job_id);
    return query
    select
        json_build_object(
            'log_id', t.sequence::text,
            'execution_id', t.job_id,
            'attempt_number', t.attempt,
            'level', t.level,
            'message', t.message,
            'logged_at', t.logged_at
        ),
        case when t.n < count(*) over () then t.sequence end
    from (
        select l.*, row_number() over (order by l.sequence) as n
        from jobq_private.job_log as l
        where l.job_id = page_logs.job_id and l.sequence > coalesce(page_logs.after, -1)
        order by l.sequence
        limit page_logs.max_lines + 1
    ) as t
    order by t.n
    limit page_logs.max_lines;
end
$$;

revoke all on function jobq_http.page_logs from public;
grant execute on function jobq_http.page_logs
to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.page_logs is
'Returns a page of the log of a job as JSON documents, in its order.';

-- Purpose: a page of queues with their statistics, by name; cursor as in page_jobs().
-- Invariant: the figures of queue_stats(). Raises: nothing.
-- Argument after: only queues whose names come after this one.
-- Argument max_queues: at most so many.
-- Members item: page_queues
-- Example: select * from jobq_http.page_queues();
create or replace function jobq_http.page_queues(
    after text default null, max_queues integer default 50
)
returns table (item json, cursor text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        json_build_object(
            'queue', t.queue,
            'queued', t.queued,
            'scheduled', t.scheduled,
            'running', t.running,
            'retrying', t.retrying,
            'dead', t.dead,
            'oldest_runnable_ms', jobq_private.milliseconds(t.oldest_runnable),
            'finished_last_minute', t.finished_last_minute,
            'is_paused', t.is_paused,
            'lanes', t.lanes,
            'closed_lanes', t.closed_lanes,
            'is_exact', t.is_exact,
            'blocked', t.blocked
        ),
        case when t.n < t.total then t.queue end
    from (
        select
            s.*, row_number() over (order by s.queue) as n, count(*) over () as total
        from jobq.queue_stats() as s
        where page_queues.after is null or s.queue > page_queues.after
    ) as t
    where t.n <= page_queues.max_queues
    order by t.n;
end
$$;

revoke all on function jobq_http.page_queues from public;
grant execute on function jobq_http.page_queues to jobq_operator, jobq_reader;

comment on function jobq_http.page_queues is
'Returns a page of queues with their statistics as JSON documents.';

-- Purpose: a page of the versions of a schedule as documents, newest first; cursor is
-- null in the last row of all, else what `before` takes for the page that follows that
-- row.
-- Invariant: reads only. Raises: 22004, JQ007.
-- Never: INVALID_ARGUMENT.
-- Argument before: only versions before this number; null for the first page.
-- Argument max_versions: at most so many.
-- Members item: schedule_document
-- Example: select * from jobq_http.page_schedule_versions('weekly summary');
create or replace function jobq_http.page_schedule_versions(
    schedule text, before integer default null, max_versions integer default 50
)
returns table (item json, cursor integer)
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_find(
        page_schedule_versions.schedule
    );
begin
    return query
    select jobq_private.schedule_document(s), case when s.version > 1 then s.version end
    from jobq_private.schedule as s
    where s.name = _found.name
    and s.version < coalesce(page_schedule_versions.before, 2147483647)
    order by s.version desc
    limit page_schedule_versions.max_versions;
end
$$;

revoke all on function jobq_http.page_schedule_versions from public;
grant execute on function jobq_http.page_schedule_versions
to jobq_producer, jobq_operator, jobq_reader;

comment on function jobq_http.page_schedule_versions is
'Returns a page of the versions of a schedule as JSON documents, newest first.';

-- Purpose: a page of schedules as documents, newest first; cursor as in page_jobs().
-- Invariant: reads only; filters as list_schedules(). Raises: 22004, 22023.
-- Argument status: only these; null means those in force, active and paused.
-- Argument before: only versions made before this one; null for the first page.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument max_schedules: at most so many, 1 to 1000.
-- Argument vocabulary: as show_job() has it.
-- Members item: schedule_document
-- Example: select * from jobq_http.page_schedules();
create or replace function jobq_http.page_schedules(
    status text default null,
    kind text default null,
    queue text default null,
    before uuid default null,
    max_schedules integer default 50,
    vocabulary text default null
)
returns table (item json, cursor uuid)
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        jobq_private.schedule_document(s, page_schedules.vocabulary),
        case when p.n < count(*) over () then p.schedule_id end
    from (
        select l.schedule_id, row_number() over (order by l.schedule_id desc) as n
        from jobq.list_schedules(
            page_schedules.status, page_schedules.kind, page_schedules.queue,
            page_schedules.before, page_schedules.max_schedules + 1
        ) as l
    ) as p
    join jobq_private.schedule as s on s.schedule_id = p.schedule_id
    order by p.n
    limit page_schedules.max_schedules;
end
$$;

revoke all on function jobq_http.page_schedules from public;
grant execute on function jobq_http.page_schedules to jobq_operator, jobq_reader;

comment on function jobq_http.page_schedules is
'Returns a page of schedules as JSON documents, newest first; cursor leads to the next page.';

-- Purpose: when a schedule fires next, by the clocks of its zone, as a document.
-- Invariant: as preview_schedule(). Raises: 22004, JQ007. Never: INVALID_ARGUMENT.
-- Argument schedule_id: its version.
-- Returns: an object, with the array slots.
-- Example: select jobq_http.preview_slots(:'schedule');
create or replace function jobq_http.preview_slots(schedule_id uuid)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select json_build_object('slots', coalesce(json_agg(
            jobq_private.moment_in(p.slot_at, s.time_zone) order by p.slot_at
        ), '[]'))
        from jobq.preview_schedule(preview_slots.schedule_id::text) as p
        cross join jobq_private.schedule_find(preview_slots.schedule_id::text) as s
    );
end
$$;

revoke all on function jobq_http.preview_slots from public;
grant execute on function jobq_http.preview_slots
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.preview_slots is
'Returns when a schedule fires next, by the clocks of its zone, as a document.';

-- Purpose: change a recurring job: a new version takes over, which is returned.
-- Invariant: as update_schedule(); one-shot jobs never change, and yield null.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ009.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument job_id: the id of the recurring job's version.
-- Members changes: create_schedule, but not name
-- Returns: the new version as show_schedule() returns it; null for a job that is not
-- recurring.
-- Example: select jobq_http.revise_job(:'schedule', '{"cron": "0 10 * * MON"}');
create or replace function jobq_http.revise_job(job_id uuid, changes jsonb)
returns json
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _schedule_id uuid;
begin
    if not exists (
        select from jobq_private.schedule as s where s.schedule_id = revise_job.job_id
    ) then
        perform jobq.get_job(revise_job.job_id);
        return null;
    end if;
    _schedule_id := jobq.update_schedule(revise_job.job_id::text, revise_job.changes);
    return jobq_http.show_schedule(_schedule_id::text);
end
$$;

revoke all on function jobq_http.revise_job from public;
grant execute on function jobq_http.revise_job to jobq_producer, jobq_operator;

comment on function jobq_http.revise_job is
'Changes a recurring job and returns its new version as a JSON document; null for a one-shot job.';

-- Purpose: take a key of the HTTP API out of use.
-- Invariant: the row stays, so that its name and its last use can still be read; revoking
-- it again changes nothing. Raises: 22004, JQ007.
-- Argument name: the key's name.
-- Example: select jobq_http.revoke_api_key('web');
create or replace function jobq_http.revoke_api_key(name text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if revoke_api_key.name is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'name');
    end if;
    update jobq_private.api_key as k
    set revoked_at = coalesce(k.revoked_at, now())
    where k.api_key = revoke_api_key.name;
    if not found then
        perform jobq_private.raise_error(
            'API_KEY_NOT_FOUND', format('name %s', revoke_api_key.name)
        );
    end if;
end
$$;

revoke all on function jobq_http.revoke_api_key from public;
grant execute on function jobq_http.revoke_api_key to jobq_operator;

comment on function jobq_http.revoke_api_key is
'Takes a key of the HTTP API out of use.';

-- Purpose: dead jobs by kind, queue and error code, with what each group has in common.
-- Invariant: looks at the newest max_looked dead jobs, by an index. Raises: 22004, 22023.
-- Argument max_looked: at most so many dead jobs, 1 to 100000.
-- Returns: a JSON object: looked_at, how many; is_all, whether these are all; groups, an array
-- of objects: kind, queue, error_code, jobs, first_at, last_at, error, errors (how many
-- different ones), workers, attempts, job_id of the newest, and metadata that all have.
-- Example: select jobq_http.show_dead_jobs() -> 'groups';
create or replace function jobq_http.show_dead_jobs(max_looked integer default 10000)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
    _document json;
begin
    if show_dead_jobs.max_looked is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_looked');
    elsif show_dead_jobs.max_looked not between 1 and 100000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_looked must be from 1 to 100000'
        );
    end if;

    -- Texts are compared byte by byte. What all have in common the newest has, too.
    with looked as materialized (
        select a.job_id, a.kind collate "C" as kind, a.queue collate "C" as queue,
            coalesce(a.last_error_code, '') collate "C" as code, a.last_error,
            a.worker collate "C" as worker, a.finished_at,
            a.attempt - a.uncounted as attempts, a.metadata, row_number() over () as n
        from (
            select d.*
            from jobq_private.job_archive as d
            where d.state = 'dead'
            order by d.job_id desc
            limit show_dead_jobs.max_looked + 1
        ) as a
    ),
    told as (
        select l.kind, l.queue, l.code, hashtext(l.last_error) as error,
            count(*) as jobs, min(l.n) as n,
            min(l.finished_at) as first_at, max(l.finished_at) as last_at,
            min(l.attempts) as least_attempts, max(l.attempts) as most_attempts
        from looked as l
        group by l.kind, l.queue, l.code, hashtext(l.last_error)
    ),
    hands as (
        select w.kind, w.queue, w.code, (array_agg(w.worker order by w.worker))[1:5] as workers
        from (select distinct l.kind, l.queue, l.code, l.worker from looked as l) as w
        group by w.kind, w.queue, w.code
    ),
    grouped as materialized (
        select t.kind, t.queue, t.code, sum(t.jobs)::bigint as jobs, min(t.n) as n,
            min(t.first_at) as first_at, max(t.last_at) as last_at, count(*) as errors,
            min(t.least_attempts) as least_attempts, max(t.most_attempts) as most_attempts
        from told as t
        group by t.kind, t.queue, t.code
        order by sum(t.jobs) desc, max(t.last_at) desc
        limit 200
    ),
    newest as materialized (
        select g.n, g.kind, g.queue, g.code, l.job_id, left(l.last_error, 300) as error,
            l.metadata
        from grouped as g
        join looked as l on l.n = g.n
    ),
    shared as (
        select n.n, json_object_agg(e.key, e.value order by e.key) as metadata
        from newest as n
        cross join lateral jsonb_each_text(
            case jsonb_typeof(n.metadata) when 'object' then n.metadata end
        ) as e
        where not exists (
            select from looked as l
            where l.kind = n.kind and l.queue = n.queue and l.code = n.code
            and (not l.metadata ? e.key or l.metadata ->> e.key is distinct from e.value)
        )
        group by n.n
    )
    select json_build_object(
        'looked_at', least(show_dead_jobs.max_looked, (select count(*) from looked)),
        'is_all', (select count(*) <= show_dead_jobs.max_looked from looked),
        'groups', coalesce((
            select json_agg(json_build_object(
                'kind', g.kind, 'queue', g.queue, 'error_code', nullif(g.code, ''),
                'jobs', g.jobs, 'first_at', g.first_at, 'last_at', g.last_at,
                'error', n.error, 'errors', g.errors, 'workers', h.workers,
                'least_attempts', g.least_attempts, 'most_attempts', g.most_attempts,
                'job_id', n.job_id, 'metadata', coalesce(c.metadata, '{}')
            ) order by g.jobs desc, g.last_at desc)
            from grouped as g
            join newest as n on n.n = g.n
            join hands as h on h.kind = g.kind and h.queue = g.queue and h.code = g.code
            left join shared as c on c.n = g.n
        ), '[]')
    ) into _document;
    return _document;
end
$$;

revoke all on function jobq_http.show_dead_jobs from public;
grant execute on function jobq_http.show_dead_jobs to jobq_operator, jobq_reader;

comment on function jobq_http.show_dead_jobs is
'Returns dead jobs by kind, queue and error code, with what each group has in common, as a JSON document.';

-- Purpose: one execution as the HTTP API shows it.
-- Invariant: reads only. Raises: 22004, JQ001.
-- Argument execution_id: the id of the execution, which is that of its job.
-- Members return: execution_document
-- Returns: a JSON object.
-- Example: select jobq_http.show_execution(:'running');
create or replace function jobq_http.show_execution(execution_id uuid)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return jobq_private.execution_document(jobq.get_job(show_execution.execution_id));
end
$$;

revoke all on function jobq_http.show_execution from public;
grant execute on function jobq_http.show_execution
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.show_execution is
'Returns one execution as a JSON document.';

-- Purpose: how many jobs were made and ended, and how long they took, over the last hour,
-- day or month, from the history that maintain() keeps.
-- Invariant: reads the history alone, a few thousand rows at most. Raises: 22004, 22023.
-- Argument span: hour, by minute; day, by ten minutes; or month, by hour.
-- Argument by: queue or kind.
-- Argument queue: only this queue; null means all.
-- Argument kind: only this kind; null means all.
-- Returns: a JSON object: since and until, instants; width_ms, of a bucket; counts, an array of
-- arrays: the number of the bucket, the queue or kind, how many were enqueued, succeeded,
-- failed (and tried again), dead, cancelled; latency, an array of arrays: the number of the
-- bucket, the median and the 95th percentile in milliseconds of the jobs that succeeded, of
-- all queues, from when they could first run.
-- Example: select jobq_http.show_history('day', 'kind') -> 'latency';
create or replace function jobq_http.show_history(
    span text default 'hour',
    by text default 'queue',
    queue text default null,
    kind text default null
)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    _minutes constant integer :=
        case show_history.span when 'hour' then 1 when 'day' then 10 when 'month' then 60 end;
    _width constant interval := _minutes * interval '1 min';
    _buckets constant integer :=
        case show_history.span when 'hour' then 60 when 'day' then 144 else 720 end;
    _until timestamptz;
    _since timestamptz;
begin
    if num_nulls(show_history.span, show_history.by) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'span and by');
    elsif _minutes is null or show_history.by not in ('queue', 'kind') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'span must be hour, day or month, by queue or kind'
        );
    end if;
    _until := date_bin(_width, clock_timestamp() - interval '10 s', '2000-01-01 UTC');
    _since := _until - _buckets * _width;

    return json_build_object(
        'since', _since,
        'until', _until,
        'width_ms', jobq_private.milliseconds(_width),
        'counts', (
            select coalesce(json_agg(json_build_array(
                c.n, c.name, c.enqueued, c.succeeded, c.failed, c.dead, c.cancelled
            ) order by c.n, c.name), '[]')
            from (
                select
                    (extract(epoch from h.bucket - _since) / 60)::integer / _minutes as n,
                    case show_history.by when 'queue' then h.queue else h.kind end as name,
                    sum(h.enqueued) as enqueued, sum(h.succeeded) as succeeded,
                    sum(h.failed) as failed, sum(h.dead) as dead,
                    sum(h.cancelled) as cancelled
                from jobq_private.history as h
                where h.minutes = _minutes
                and h.bucket >= _since and h.bucket < _until
                and (show_history.queue is null or h.queue = show_history.queue)
                and (show_history.kind is null or h.kind = show_history.kind)
                group by 1, 2
            ) as c
        ),
        'latency', (
            select coalesce(json_agg(json_build_array(q.n, q.p50, q.p95) order by q.n), '[]')
            from (
                select p.n, min(p.value) filter (where p.upto >= 0.5 * p.total) as p50,
                    min(p.value) filter (where p.upto >= 0.95 * p.total) as p95
                from (
                    select
                        (extract(epoch from l.bucket - _since) / 60)::integer / _minutes as n,
                        round(power(2, (c.n - 0.5) / 2.0))::bigint as value,
                        sum(c.jobs) over (partition by l.bucket order by c.n) as upto,
                        sum(c.jobs) over (partition by l.bucket) as total
                    from jobq_private.latency as l
                    cross join unnest(l.counts) with ordinality as c (jobs, n)
                    where l.minutes = _minutes and l.bucket >= _since and l.bucket < _until
                ) as p
                group by p.n
            ) as q
        )
    );
end
$$;

revoke all on function jobq_http.show_history from public;
grant execute on function jobq_http.show_history to jobq_operator, jobq_reader;

comment on function jobq_http.show_history is
'Returns how many jobs were made and ended over the last hour, day or month, and how long they took, as a JSON document.';

-- Purpose: one job, live or archived, or one recurring job, as the HTTP API shows it.
-- Invariant: reads only; ids of schedules and of jobs never meet.
-- Raises: 22004, 22023, JQ001.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument job_id: the job's id, or that of a recurring job's version.
-- Argument vocabulary: kind, so that what the job is given is its payload, or endpoint, so
-- that it is its input; null means endpoint for deliveries and recurring jobs.
-- Members return: job_document
-- Returns: a JSON object, with payload or input beside these; for a recurring job that of
-- show_schedule().
-- Example: select jobq_http.show_job(:'waiting');
create or replace function jobq_http.show_job(job_id uuid, vocabulary text default null)
returns json
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from jobq_private.schedule as s where s.schedule_id = show_job.job_id
    ) then
        return jobq_http.show_schedule(show_job.job_id::text, show_job.vocabulary);
    end if;
    return jobq_private.job_document(
        jobq.get_job(show_job.job_id), show_job.vocabulary
    );
end
$$;

revoke all on function jobq_http.show_job from public;
grant execute on function jobq_http.show_job
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.show_job is
'Returns one job, live or archived, or one recurring job, as a JSON document.';

-- Purpose: jobs that fit a filter, newest first, without payloads, and how many there are.
-- Invariant: looks at max_looked jobs at most, live ones and archived, from `before` on,
-- each by a descent of an index; what lies behind is told by the cursor, so a filter that
-- nothing fits costs no more than one that all jobs fit. Raises: 22004, 22023.
-- Argument states: only these; null means all.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument created_after: only those made at this instant or later.
-- Argument created_before: only those made before this instant.
-- Argument metadata: only those whose metadata contain this object.
-- Argument error_code: only those whose last error has this code; null means all.
-- Argument worker: only those that this worker runs, or ran last; null means all.
-- Argument before: only jobs made before this one; null for the first page.
-- Argument max_jobs: at most so many in items, 1 to 1000.
-- Argument max_looked: at most so many jobs are looked at, 1 to 100000.
-- Returns: a JSON object: items; matched, how many of those looked at fit; is_all, whether
-- nothing was left to look at; cursor, what `before` takes to go on, or null.
-- Example: select jobq_http.show_jobs('{dead}', error_code => 'TIMEOUT') ->> 'matched';
create or replace function jobq_http.show_jobs(
    states text[] default null,
    kind text default null,
    queue text default null,
    created_after timestamptz default null,
    created_before timestamptz default null,
    metadata jsonb default null,
    error_code text default null,
    worker text default null,
    before uuid default null,
    max_jobs integer default 50,
    max_looked integer default 10000
)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
    _ended constant text[] := '{dead,cancelled}'::text[];
    _all constant text[] := array(select distinct t.to_state from jobq_private.transition as t);
    _states constant text[] := coalesce(show_jobs.states, _all);
    _since constant uuid := coalesce(
        jobq_private.id_floor(show_jobs.created_after),
        '00000000-0000-0000-0000-000000000000'
    );
    _until constant uuid := least(
        show_jobs.before, jobq_private.id_floor(show_jobs.created_before),
        'ffffffff-ffff-ffff-ffff-ffffffffffff'
    );
    _found record;
    _shown uuid[];
    _items json;
begin
    if num_nulls(show_jobs.max_jobs, show_jobs.max_looked) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs and max_looked');
    elsif show_jobs.max_jobs not between 1 and 1000
        or show_jobs.max_looked not between 1 and 100000
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'max_jobs must be from 1 to 1000, max_looked from 1 to 100000');
    elsif not _states <@ _all or array_position(_states, null) is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'states are ' || array_to_string(_all, ', '));
    end if;

    if _states @> _all and num_nonnulls(
        show_jobs.kind, show_jobs.queue, show_jobs.metadata, show_jobs.error_code, show_jobs.worker
    ) = 0 then
        _found := jobq_private.look_newest(_since, _until, show_jobs.max_looked);
    elsif _states <@ _ended and num_nonnulls(show_jobs.metadata, show_jobs.worker) = 0 then
        _found := jobq_private.look_failed(
            _states, show_jobs.kind, show_jobs.queue, show_jobs.error_code,
            _since, _until, show_jobs.max_looked
        );
    else
        _found := jobq_private.look_jobs(
            _states, show_jobs.kind, show_jobs.queue, show_jobs.metadata,
            show_jobs.error_code, show_jobs.worker, _since, _until, show_jobs.max_looked
        );
    end if;
    _shown := _found.job_ids[:show_jobs.max_jobs];
    select json_agg(json_build_object(
        'job_id', f.job_id, 'kind', f.kind, 'queue', f.queue, 'state', f.state,
        'priority', f.priority, 'attempts', f.attempt - f.uncounted,
        'max_attempts', f.max_attempts, 'worker', f.worker,
        'created_at', f.created_at, 'run_at', f.run_at,
        'started_at', f.claimed_at, 'finished_at', f.finished_at,
        'last_error_code', f.last_error_code,
        'last_error', left(f.last_error, 200)
    ) order by f.job_id desc) into _items
    from (
        select j.job_id, j.kind, j.queue, j.state, j.priority, j.attempt, j.uncounted,
            j.max_attempts, j.worker, j.created_at, j.run_at, j.claimed_at,
            null::timestamptz as finished_at, j.last_error_code, j.last_error
        from jobq_private.job as j
        where j.job_id = any (_shown)
        union all
        select a.job_id, a.kind, a.queue, a.state, a.priority, a.attempt, a.uncounted,
            a.max_attempts, a.worker, a.created_at, a.run_at, a.claimed_at,
            a.finished_at, a.last_error_code, a.last_error
        from jobq_private.job_archive as a
        where a.job_id = any (_shown)
    ) as f;
    return json_build_object(
        'items', coalesce(_items, '[]'),
        'matched', coalesce(cardinality(_found.job_ids), 0),
        'is_all', not _found.is_cut,
        'cursor', case
            when cardinality(_found.job_ids) > show_jobs.max_jobs
            then _shown[show_jobs.max_jobs]
            else _found.last_id
        end
    );
end
$$;

revoke all on function jobq_http.show_jobs from public;
grant execute on function jobq_http.show_jobs to jobq_operator, jobq_reader;

comment on function jobq_http.show_jobs is
'Returns jobs that fit a filter, newest first and without payloads, and how many fit among the newest 10,000.';

-- Purpose: who has logged in to the database, and what the HTTP API would call its scopes.
-- Invariant: reads the roles of the session's user alone. Raises: nothing.
-- Returns: a JSON object: login, and scopes, an array of some of produce, work, operate and read.
-- Example: select jobq_http.show_login() ->> 'login';
create or replace function jobq_http.show_login()
returns json
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select json_build_object(
        'login', session_user,
        'scopes', coalesce(json_agg(s.scope order by s.scope) filter (
            where pg_has_role(session_user, s.role, 'usage')
        ), '[]')
    )
    from (
        values
        ('produce', 'jobq_producer'), ('work', 'jobq_worker'),
        ('operate', 'jobq_operator'), ('read', 'jobq_reader')
    ) as s (scope, role)
$$;

revoke all on function jobq_http.show_login from public;
grant execute on function jobq_http.show_login
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.show_login is
'Returns who has logged in to the database, with the scopes that follow from its roles.';

-- Purpose: a number that has changed when anything may have changed that is shown of jobs,
-- queues, limits, schedules, workers or endpoints, or a line was logged.
-- Invariant: reads the server's statistics and a sequence, and no table; a change shows in
-- about a second. Raises: nothing.
-- Returns: how many rows were added, changed or deleted since the statistics began.
-- Example: select jobq_http.show_pulse();
create or replace function jobq_http.show_pulse()
returns bigint
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select sum(
        pg_stat_get_tuples_inserted(t.name::regclass)
        + pg_stat_get_tuples_updated(t.name::regclass)
        + pg_stat_get_tuples_deleted(t.name::regclass)
    )::bigint + coalesce(
        pg_sequence_last_value('jobq_private.job_log_sequence'::regclass), 0
    )
    from (
        values
        ('jobq_private.job'), ('jobq_private.queue'), ('jobq_private.key_limit'),
        ('jobq_private.schedule'), ('jobq_private.worker'), ('jobq_private.endpoint')
    ) as t (name)
$$;

revoke all on function jobq_http.show_pulse from public;
grant execute on function jobq_http.show_pulse to jobq_operator, jobq_reader;

comment on function jobq_http.show_pulse is
'Returns a number that changes when jobs, queues, schedules, workers or endpoints do, at the cost of no table.';

-- Purpose: a queue in detail: what it allows, which keys are held, and who holds keys now; with a
-- key also what holds for that key.
-- Invariant: reads only, each part by an index and no more than max_rows of it. A queue that
-- nobody has declared allows all. Raises: 22004, 22023.
-- Argument concurrency_key: a key to look at, or null.
-- Argument max_rows: at most so many holds, limits and runners, 1 to 1000.
-- Returns: a JSON object: queue, is_declared, paused_at, pause_reason, max_depth, max_running,
-- rate_limit, rate_period_ms, rate_burst, key_max_running, key_rate_limit, key_rate_period_ms,
-- key_rate_burst, ordered, on_dead; holds, an array of objects: concurrency_key and kind (one of
-- them null), until (null: until it is released), reason; limits, an array of objects:
-- concurrency_key, max_running, rate_limit, rate_period_ms, rate_burst; runners, the jobs that
-- take a key's places: concurrency_key, job_id, kind, worker, started_at; closed, the keys that
-- wait for a time: concurrency_key, open_at; and key, null or an object: concurrency_key,
-- max_running, rate_limit, rate_period_ms, rate_burst, held_until (infinity as null), is_held,
-- hold_reason, waiting (10,001 means more), runners.
-- Example: select jobq_http.show_queue('mail', 'customer-7') -> 'key' ->> 'is_held';
create or replace function jobq_http.show_queue(
    queue text, concurrency_key text default null, max_rows integer default 100
)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _lane_id constant uuid := jobq_private.lane_id(
        show_queue.queue, show_queue.concurrency_key
    );
begin
    if num_nulls(show_queue.queue, show_queue.max_rows) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue and max_rows');
    elsif length(show_queue.queue) not between 1 and 128 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'a queue has 1 to 128 characters'
        );
    elsif show_queue.max_rows not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_rows must be from 1 to 1000'
        );
    end if;
    return (
        select json_build_object(
            'queue', show_queue.queue, 'is_declared', q.queue is not null,
            'paused_at', q.paused_at, 'pause_reason', q.pause_reason,
            'max_depth', q.max_depth, 'max_running', q.max_running,
            'rate_limit', q.rate_limit,
            'rate_period_ms', jobq_private.milliseconds(q.rate_period),
            'rate_burst', q.rate_burst, 'key_max_running', q.key_max_running,
            'key_rate_limit', q.key_rate_limit,
            'key_rate_period_ms', jobq_private.milliseconds(q.key_rate_period),
            'key_rate_burst', q.key_rate_burst,
            'ordered', coalesce(q.ordered, false), 'on_dead', q.on_dead,
            'holds', (
                select coalesce(json_agg(json_build_object(
                    'concurrency_key', h.concurrency_key, 'kind', h.kind,
                    'until', nullif(h.held_until, 'infinity'), 'reason', h.hold_reason
                ) order by h.held_until desc), '[]')
                from (
                    select g.*
                    from jobq_private.gate as g
                    where g.queue = show_queue.queue
                    and g.held_until > _now and g.held_until > '-infinity'
                    order by g.held_until desc
                    limit show_queue.max_rows
                ) as h
            ),
            'limits', (
                select coalesce(json_agg(json_build_object(
                    'concurrency_key', l.concurrency_key, 'max_running', l.max_running,
                    'rate_limit', l.rate_limit,
                    'rate_period_ms', jobq_private.milliseconds(l.rate_period),
                    'rate_burst', l.rate_burst
                ) order by l.concurrency_key), '[]')
                from (
                    select k.*
                    from jobq_private.key_limit as k
                    where k.queue = show_queue.queue
                    order by k.concurrency_key
                    limit show_queue.max_rows
                ) as l
            ),
            'runners', jobq_private.key_runners(show_queue.queue, null, show_queue.max_rows),
            'closed', (
                select coalesce(json_agg(json_build_object(
                    'concurrency_key', c.concurrency_key, 'open_at', c.open_at
                ) order by c.open_at), '[]')
                from (
                    select l.concurrency_key, l.open_at
                    from jobq_private.lane as l
                    where l.queue = show_queue.queue and l.state <> 'full'
                    and l.open_at > _now and l.open_at < 'infinity'
                    order by l.open_at
                    limit show_queue.max_rows
                ) as c
                where c.concurrency_key is not null
            ),
            'key', case when show_queue.concurrency_key is not null then (
                select json_build_object(
                    'concurrency_key', show_queue.concurrency_key,
                    'max_running', case when q.ordered then 1
                        else coalesce(l.max_running, q.key_max_running) end,
                    'rate_limit', coalesce(l.rate_limit, q.key_rate_limit),
                    'rate_period_ms', jobq_private.milliseconds(
                        case when l.rate_limit is null then q.key_rate_period
                        else l.rate_period end
                    ),
                    'rate_burst', case when l.rate_limit is null then q.key_rate_burst
                        else l.rate_burst end,
                    'is_held', coalesce(g.held_until > _now, false),
                    'held_until', case when g.held_until > _now
                        then nullif(g.held_until, 'infinity') end,
                    'hold_reason', case when g.held_until > _now then g.hold_reason end,
                    'waiting', (
                        select count(*)
                        from (
                            select from jobq_private.job as j
                            where j.queue = show_queue.queue and j.lane_id = _lane_id
                            and j.state in ('queued', 'retrying')
                            limit 10001
                        ) as w
                    ),
                    'runners', jobq_private.key_runners(
                        show_queue.queue, _lane_id, show_queue.max_rows
                    )
                )
                from (values (1)) as one
                left join jobq_private.gate as g on g.gate_id = _lane_id
                left join jobq_private.key_limit as l
                on l.queue = show_queue.queue
                and l.concurrency_key = show_queue.concurrency_key
            ) end
        )
        from (values (1)) as one
        left join jobq_private.queue as q on q.queue = show_queue.queue
    );
end
$$;

revoke all on function jobq_http.show_queue from public;
grant execute on function jobq_http.show_queue to jobq_operator, jobq_reader;

comment on function jobq_http.show_queue is
'Returns what a queue allows, which of its keys are held, and which jobs hold keys, as a JSON document.';

-- Purpose: queues at a glance, by name: what queue_stats() tells, at a cost that has an end.
-- Invariant: looks at some 10,000 waiting jobs at most, as many of each queue: a count that
-- is greater than ends_at means more than that. Queues are found by descents of indexes.
-- running and dead end at most, the dead being the newest of all queues.
-- Raises: 22004, 22023.
-- Argument most: where counts end at the latest, 1 to 100000.
-- Argument max_queues: at most so many queues, 1 to 1000.
-- Returns: a JSON array of objects: queue, queued, scheduled, running, retrying, dead,
-- oldest_runnable_ms, is_paused, paused_at, pause_reason, is_served, ends_at, is_declared,
-- key_max_running, max_depth.
-- Example: select jobq_http.show_queues();
create or replace function jobq_http.show_queues(
    most integer default 10000, max_queues integer default 200
)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _document json;
begin
    if num_nulls(show_queues.most, show_queues.max_queues) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'most and max_queues');
    elsif show_queues.most not between 1 and 100000
        or show_queues.max_queues not between 1 and 1000
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'most must be from 1 to 100000, max_queues from 1 to 1000');
    end if;

    with leased as (
        select s.queue, count(*) as running
        from (
            select j.queue from jobq_private.job as j
            where j.state = 'running' limit show_queues.most + 1
        ) as s
        group by s.queue
    ),
    ended as (
        select s.queue, count(*) as dead
        from (
            select a.queue from jobq_private.job_archive as a
            where a.state = 'dead'
            order by a.job_id desc
            limit show_queues.most + 1
        ) as s
        group by s.queue
    ),
    known as (
        select n.queue
        from (
            select t.queue from jobq_private.waiting_queue as t
            union select l.queue from leased as l
            union select e.queue from ended as e
            union select q.queue from jobq_private.queue as q
            union select unnest(w.queues) from jobq_private.worker as w
        ) as n
        where n.queue is not null
        order by n.queue
        limit show_queues.max_queues
    )
    select json_agg(json_build_object(
        'queue', k.queue,
        'queued', w.queued,
        'scheduled', w.scheduled,
        'retrying', w.retrying,
        'running', coalesce(l.running, 0),
        'dead', coalesce(e.dead, 0),
        'oldest_runnable_ms', jobq_private.milliseconds(
            _now - least(o.run_at, w.oldest)
        ),
        'is_paused', q.paused_at is not null,
        'paused_at', q.paused_at,
        'pause_reason', q.pause_reason,
        'ends_at', c.ends_at,
        'is_declared', q.queue is not null,
        'max_depth', q.max_depth,
        'key_max_running', q.key_max_running,
        'is_served', exists (
            select from jobq_private.worker as u
            where k.queue = any (u.queues) and u.seen_at > _now - interval '1 min'
        )
    ) order by k.queue) into _document
    from known as k
    left join jobq_private.queue as q on q.queue = k.queue
    left join leased as l on l.queue = k.queue
    left join ended as e on e.queue = k.queue
    cross join (
        select greatest(least(
            show_queues.most, 100 + 10000 / greatest(1, count(*))
        ), 1) as ends_at
        from known
    ) as c
    cross join lateral (
        select
            count(*) filter (where s.state = 'queued' and s.run_at <= _now) as queued,
            count(*) filter (where s.state = 'queued' and s.run_at > _now) as scheduled,
            count(*) filter (where s.state = 'retrying') as retrying,
            min(s.run_at) filter (where s.run_at <= _now) as oldest
        from (
            (
                select j.state, j.run_at from jobq_private.job as j
                where j.queue = k.queue and j.state in ('queued', 'retrying')
                and j.lane_id is null
                limit c.ends_at + 1
            )
            union all
            (
                select j.state, j.run_at from jobq_private.job as j
                where j.queue = k.queue and j.state in ('queued', 'retrying')
                and j.lane_id is not null
                limit c.ends_at + 1
            )
        ) as s
    ) as w
    left join lateral (
        select d.due as run_at
        from jobq.next_due(array[k.queue]) as d (due)
        where d.due <= _now and d.due > '0001-01-02 UTC' -- an open lane says no time
    ) as o on true;
    return coalesce(_document, '[]');
end
$$;

revoke all on function jobq_http.show_queues from public;
grant execute on function jobq_http.show_queues to jobq_operator, jobq_reader;

comment on function jobq_http.show_queues is
'Returns queues at a glance as a JSON document; its counts end, so that it stays cheap however many jobs there are.';

-- Purpose: a schedule as the HTTP API shows it.
-- Invariant: reads only. Raises: 22004, 22023, JQ007.
-- Argument vocabulary: as show_job() has it.
-- Members return: schedule_document
-- Returns: a JSON object, with payload or input beside these.
-- Example: select jobq_http.show_schedule('weekly summary');
create or replace function jobq_http.show_schedule(
    schedule text, vocabulary text default null
)
returns json
language plpgsql
stable
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return jobq_private.schedule_document(
        jobq_private.schedule_find(show_schedule.schedule), show_schedule.vocabulary
    );
end
$$;

revoke all on function jobq_http.show_schedule from public;
grant execute on function jobq_http.show_schedule
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_http.show_schedule is
'Returns a schedule, by name or by the id of a version, as a JSON document.';

-- Purpose: who works, and on what.
-- Invariant: reads the workers and what is leased, 10,000 jobs at most. Raises: nothing.
-- Returns: a JSON array of objects, live workers first: worker, queues, started_at, seen_at,
-- is_live, jobs (how many it runs), oldest (the one that it has run the longest: job_id, kind,
-- started_at), kinds (an object: how many of each), region, except_kinds (those that it does not
-- know), release.
-- Example: select jobq_http.show_workers();
create or replace function jobq_http.show_workers()
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
    return (
        with leased as materialized (
            select j.worker, j.job_id, j.kind, j.claimed_at
            from jobq_private.job as j
            where j.state = 'running'
            limit 10000
        ),
        held as (
            select k.worker, sum(k.jobs) as jobs, json_object_agg(k.kind, k.jobs) as kinds
            from (
                select l.worker, l.kind, count(*) as jobs from leased as l group by 1, 2
            ) as k
            group by k.worker
        ),
        first as (
            select distinct on (l.worker) l.worker, json_build_object(
                'job_id', l.job_id, 'kind', l.kind, 'started_at', l.claimed_at
            ) as oldest
            from leased as l
            order by l.worker, l.claimed_at
        ),
        known as (
            select w.worker, w.queues, w.started_at, w.seen_at,
                w.seen_at > now() - interval '1 min' as is_live, w.region, w.except_kinds,
                w.release
            from jobq_private.worker as w
            order by 5 desc, w.worker
            limit 500
        )
        select coalesce(json_agg(json_build_object(
            'worker', w.worker, 'queues', w.queues, 'started_at', w.started_at,
            'seen_at', w.seen_at, 'is_live', w.is_live, 'jobs', coalesce(h.jobs, 0),
            'kinds', coalesce(h.kinds, '{}'), 'oldest', f.oldest, 'region', w.region,
            'except_kinds', w.except_kinds, 'release', w.release
        ) order by w.is_live desc, w.worker), '[]')
        from known as w
        left join held as h on h.worker = w.worker
        left join first as f on f.worker = w.worker
    );
end
$$;

revoke all on function jobq_http.show_workers from public;
grant execute on function jobq_http.show_workers to jobq_operator, jobq_reader;

comment on function jobq_http.show_workers is
'Returns who works, and on what, as a JSON document.';

-- Purpose: stop a job as cancel() does, or retire a recurring one.
-- Invariant: what a recurring job has fired already goes on.
-- Raises: 22004, 22023, JQ001.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument job_id: the job's id, or that of a recurring job's version.
-- Returns: cancelled, cancel_requested, already_finished or, of a recurring job,
-- retired.
-- Example: select jobq_http.stop_job(:'waiting');
create or replace function jobq_http.stop_job(job_id uuid, reason text default null)
returns text
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _status text;
begin
    select s.status into _status
    from jobq_private.schedule as s
    where s.schedule_id = stop_job.job_id;
    if not found then
        return jobq.cancel(stop_job.job_id, stop_job.reason);
    elsif _status = 'retired' then
        return 'already_finished';
    end if;
    perform jobq.retire_schedule(stop_job.job_id::text);
    return 'retired';
end
$$;

revoke all on function jobq_http.stop_job from public;
grant execute on function jobq_http.stop_job to jobq_producer, jobq_operator;

comment on function jobq_http.stop_job is
'Stops a job as cancel() does, or retires a recurring one, and says which.';

-- Purpose: enqueue one job and show it, with whether it was created.
-- Invariant: as enqueue(): a key that is taken yields the job that holds it.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010.
-- Argument expires_at: no attempt begins after this instant: the job is then dead, with the
-- code EXPIRED; after run_at, null for never.
-- Argument is_endpoint: whether kind must be an endpoint.
-- Never: JOB_NOT_FOUND.
-- Column item: the job as show_job() returns it.
-- Example: select * from jobq_http.submit_job('send_email', '{"to": "ada@example.org"}');
create or replace function jobq_http.submit_job(
    kind text,
    payload jsonb default '{}',
    queue text default null,
    run_at timestamptz default null,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    idempotency_key text default null,
    dedup_key text default null,
    dedup text default null,
    metadata jsonb default null,
    is_endpoint boolean default false,
    concurrency_key text default null,
    expires_at timestamptz default null,
    after uuid[] default null,
    after_failure text default null,
    batch_id uuid default null,
    out created boolean,
    out item json
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    _job constant jobq_private.new_job := row(
        1, submit_job.kind, submit_job.payload, submit_job.queue, submit_job.run_at,
        submit_job.priority, submit_job.max_attempts, submit_job.timeout,
        submit_job.idempotency_key, submit_job.dedup_key, submit_job.dedup,
        submit_job.metadata, null, null, submit_job.concurrency_key,
        submit_job.expires_at,
        submit_job.after, submit_job.after_failure, submit_job.batch_id, null, null
    );
    _job_id uuid;
begin
    if is_endpoint then
        perform jobq_private.check_endpoints(array[submit_job.kind]);
    end if;
    select s.created, s.job_id into created, _job_id
    from jobq_private.store_job(_job) as s;
    item := jobq_private.job_document(
        jobq.get_job(_job_id), case when is_endpoint then 'endpoint' else 'kind' end
    );
end
$$;

revoke all on function jobq_http.submit_job from public;
grant execute on function jobq_http.submit_job to jobq_producer;

comment on function jobq_http.submit_job is
'Adds a job as enqueue() does, and returns it as a JSON document with whether it was created.';

-- Purpose: enqueue many jobs, some of them deliveries.
-- Invariant: as enqueue_many(); all or none.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010.
-- Argument endpoints: kinds among those of the jobs that must be endpoints.
-- Members jobs: enqueue_many
-- Returns: a row for each job, with its place in the array.
-- Column ordinal: the place in the array, from 1.
-- Column job_id: the job, a new one or the one that holds the key already.
-- Column created: whether this call made it.
-- Example: select * from jobq_http.submit_jobs('[{"kind": "send_email"}]', '{}');
create or replace function jobq_http.submit_jobs(jobs jsonb, endpoints text[])
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_endpoints(submit_jobs.endpoints);
    return query select * from jobq.enqueue_many(submit_jobs.jobs);
end
$$;

revoke all on function jobq_http.submit_jobs from public;
grant execute on function jobq_http.submit_jobs to jobq_producer;

comment on function jobq_http.submit_jobs is
'Adds many jobs as enqueue_many() does, some of which must be of endpoints.';

-- Purpose: make a schedule unless its name is in use, and show it, with whether it was
-- made.
-- Invariant: given is a JSON object with parameters of create_schedule(); a name that
-- is in use, by whatever definition of the same kind, yields the schedule that has it, as
-- an idempotency key yields its job; of another kind it is refused. An idempotency key is
-- a name that no other kind can take.
-- Raises: 22004, 22023, JQ001, JQ004, JQ005, JQ006, JQ007, JQ009.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument given: the definition as a JSON object; without a name it gets one of its
-- own.
-- Argument idempotency_key: in place of a name.
-- Argument is_endpoint: whether the kind must be an endpoint.
-- Members given: create_schedule
-- Column item: the schedule as show_schedule() returns it.
-- Example: select * from jobq_http.submit_schedule('{"kind": "summary", "cron": "0 9 * * MON"}');
create or replace function jobq_http.submit_schedule(
    given jsonb, idempotency_key text default null, is_endpoint boolean default false,
    out created boolean, out item json
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    _known constant text[] := array[
        'name', 'kind', 'cron', 'every', 'time_zone', 'payload', 'queue',
        'from_completion', 'gap', 'fold', 'missed', 'catch_up', 'dedup', 'dedup_key',
        'jitter', 'starts_at', 'ends_at', 'priority', 'max_attempts', 'timeout',
        'metadata', 'concurrency_key', 'graph'
    ];
    _given jobq_private.schedule;
    _schedule_id uuid;
begin
    if given is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'given');
    elsif jsonb_typeof(given) <> 'object' or given - _known <> '{}' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'given must be an object with members among %s', _known
        ));
    end if;
    _given := jsonb_populate_record(null::jobq_private.schedule, given);
    _given.name := coalesce(
        _given.name,
        'key-' || encode(
            sha256(convert_to(_given.kind || ':' || idempotency_key, 'UTF8')), 'hex'
        ),
        'unnamed-' || jobq_private.new_id()
    );
    if is_endpoint then
        perform jobq_private.check_endpoints(array[_given.kind]);
    end if;

    select d.schedule_id, d.created into _schedule_id, created
    from jobq_private.schedule_declare(_given, true) as d;
    item := jobq_http.show_schedule(_schedule_id::text);
    if item ->> 'kind' <> _given.kind then
        perform jobq_private.raise_error('DEFINITION_EXISTS', format(
            'schedule %s, of kind %s', _given.name, item ->> 'kind'
        ));
    end if;
end
$$;

revoke all on function jobq_http.submit_schedule from public;
grant execute on function jobq_http.submit_schedule to jobq_producer, jobq_operator;

comment on function jobq_http.submit_schedule is
'Makes a schedule unless its name is in use, and returns it as a JSON document with whether it was created.';

reset role;

-- Deploy jobq:delivery to pg
-- Made by sql/snapshot.py from sql/delivery/: edit that.
set local role jobq_owner;

-- Purpose: open a change of a definition: check its name and what the caller expects.
-- Invariant: definitions change one at a time, so that what one refers to stays while
-- it is put; the lock holds until the transaction ends, and no reader waits for it.
-- Raises: 22004, 22023, JQ004, JQ007.
create or replace function jobq_private.begin_definition(type text, name text, mode text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _exists boolean;
begin
    if begin_definition.name is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', begin_definition.type);
    end if;
    lock table jobq_private.definition_version in share row exclusive mode;
    select exists (
        select from jobq_private.definition as d
        where d.type = begin_definition.type and d.name = begin_definition.name
    ) into _exists;

    if begin_definition.mode = 'create' and _exists then
        perform jobq_private.raise_error('DEFINITION_EXISTS', format(
            '%s %s', begin_definition.type, begin_definition.name
        ));
    elsif begin_definition.mode = 'update' and not _exists then
        perform jobq_private.refuse_definition(begin_definition.type, begin_definition.name);
    elsif begin_definition.mode not in ('put', 'create', 'update')
        or begin_definition.mode is null
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'mode must be put, create or update');
    end if;
end
$$;

revoke all on function jobq_private.begin_definition from public;

comment on function jobq_private.begin_definition is
'Opens a change of a definition: checks its name and what the caller expects.';

-- Purpose: refuse the spec of an endpoint with fields that are unknown, missing or wrong.
-- Invariant: what a delivery reads is checked here, but for what templates bring.
-- Raises: 22023.
create or replace function jobq_private.check_endpoint_spec(type text, spec jsonb)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _fields constant jsonb := '{
        "HTTP": {
            "url": "url", "method": "method", "headers": "headers", "body_template": "any",
            "timeout_ms": "milliseconds", "expected_status_codes": "statuses",
            "sign_with": "text"
        },
        "KAFKA": {
            "bootstrap_servers": "servers", "topic": "topic", "key_template": "text",
            "value_template": "any", "headers": "texts", "acks": "acks",
            "timeout_ms": "milliseconds", "options": "kafka options"
        },
        "REDIS_STREAM": {
            "redis_url": "redis url", "stream": "text", "fields_template": "fields",
            "max_len": "count", "approximate_trimming": "boolean",
            "deliver_once": "boolean", "timeout_ms": "milliseconds"
        }
    }'::jsonb;
    _needed constant jsonb := '{
        "HTTP": ["url"], "KAFKA": ["bootstrap_servers", "topic"],
        "REDIS_STREAM": ["redis_url", "stream"]
    }'::jsonb;
    _problem text;
begin
    if not _fields ? check_endpoint_spec.type then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'type must be HTTP, KAFKA or REDIS_STREAM');
    elsif jsonb_typeof(check_endpoint_spec.spec) <> 'object' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'spec must be an object');
    elsif jobq_private.has_huge_number(check_endpoint_spec.spec) then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'spec: a number beyond the range of a double');
    end if;
    select format('spec.%s is missing', n.name) into _problem
    from jsonb_array_elements_text(_needed -> check_endpoint_spec.type) as n (name)
    where not check_endpoint_spec.spec ? n.name
    limit 1;
    if not found then
        select format('spec.%s: %s', s.key, coalesce('must be ' || m.meaning, format(
            'known are %s', (
                select string_agg(k.key, ', ')
                from jsonb_object_keys(_fields -> check_endpoint_spec.type) as k (key)
            )
        )))
        into _problem
        from jsonb_each(check_endpoint_spec.spec) as s
        left join jsonb_each_text(_fields -> check_endpoint_spec.type) as f on f.key = s.key
        left join lateral jobq_private.spec_field(f.value, s.value) as m on true
        where f.key is null or not m.is_met
        limit 1;
    end if;
    if found then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;
end
$$;

revoke all on function jobq_private.check_endpoint_spec from public;

comment on function jobq_private.check_endpoint_spec is
'Refuses the spec of an endpoint with fields that are unknown, missing or wrong.';

-- Purpose: refuse names that are no endpoints.
-- Invariant: reads only. Raises: JQ007.
create or replace function jobq_private.check_endpoints(endpoints text[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _unknown constant text := (
        select n.name
        from unnest(check_endpoints.endpoints) as n (name)
        where not exists (
            select from jobq_private.endpoint as e where e.endpoint = n.name
        )
        limit 1
    );
begin
    if _unknown is not null then
        perform jobq_private.raise_error('ENDPOINT_NOT_FOUND', format(
            'endpoint %s', _unknown
        ));
    end if;
end
$$;

revoke all on function jobq_private.check_endpoints from public;

comment on function jobq_private.check_endpoints is
'Refuses names that are no endpoints.';

-- Purpose: refuse an endpoint whose templates refer to what is not there, or may not
-- stand where they stand.
-- Invariant: config may stand everywhere; input and job in templates, headers and after the
-- host of a URL; secrets where they are sent to the target or address it. Raises: JQ007.
create or replace function jobq_private.check_references(
    endpoint text, spec jsonb, config_entries jsonb
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _to_target constant text :=
        '^(url|headers|body_template|value_template|fields_template|bootstrap_servers'
        || '|redis_url|options|sign_with)$';
    _job constant text :=
        '^(id|attempt|created_at|run_at|endpoint|queue|idempotency_key)$';
    _problem text;
begin
    select format('endpoint %s: %s in %s %s', check_references.endpoint, r.written,
        r.field, case
            when r.namespace is null then 'is not input, config, secret or job and a path'
            when r.namespace = 'config' then 'is not in the config'
            when r.namespace in ('input', 'job') then 'cannot be used there'
            when r.is_optional then 'cannot have a default'
            when r.field !~ _to_target then 'cannot be used there'
            else 'is not a secret'
        end)
    into _problem
    from jobq_private.template_references(check_references.spec) as r
    where case r.namespace
        when 'config' then
            r.is_optional
            or config_entries #> string_to_array(r.path, '.') is not null
        when 'input' then jobq_private.takes_input(r.field, spec)
        when 'job' then jobq_private.takes_input(r.field, spec) and r.path ~ _job
        when 'secret' then
            r.field ~ _to_target
            and not r.is_optional
            and exists (select from jobq_private.secret as s where s.secret = r.path)
        else false
    end is not true
    order by r.field, r.written
    limit 1;

    if found then
        perform jobq_private.raise_error('TEMPLATE_RESOLUTION_FAILED', _problem);
    end if;
end
$$;

revoke all on function jobq_private.check_references from public;

comment on function jobq_private.check_references is
'Refuses an endpoint whose templates refer to what is not there.';

-- Purpose: the rate by which an endpoint gets at most so many deliveries in any second.
-- Invariant: what may start together is taken off what starts in a second, so that no second has
-- more. Raises: nothing.
create or replace function jobq_private.endpoint_rate(
    max_per_second double precision,
    out rate_limit integer, out rate_period interval, out rate_burst integer
)
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _even double precision;
begin
    if max_per_second is not null then
        rate_burst := least(1 + floor(max_per_second / 20), 32767);
        _even := max_per_second - rate_burst + 1;
        rate_period := make_interval(secs => case when _even < 1000 then 1000 else 1 end);
        rate_limit := greatest(
            1, floor(_even * case when _even < 1000 then 1000 else 1 end)
        );
    end if;
end
$$;

revoke all on function jobq_private.endpoint_rate from public;

comment on function jobq_private.endpoint_rate is
'The rate by which an endpoint gets at most so many deliveries in any second.';

-- Purpose: check what an endpoint refers to, and give its payload schema.
-- Invariant: called under the lock of begin_definition(). Raises: JQ007.
create or replace function jobq_private.endpoint_schema(
    endpoint text, spec jsonb, payload_spec text, config text
)
returns jsonb
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _schema jsonb;
    _entries jsonb;
begin
    if endpoint_schema.payload_spec is not null then
        select p.schema into _schema
        from jobq_private.payload_spec as p
        where p.payload_spec = endpoint_schema.payload_spec;
        if not found then
            perform jobq_private.raise_error('INVALID_PAYLOAD_SPEC_REF', format(
                'payload_spec %s', endpoint_schema.payload_spec
            ));
        end if;
    end if;
    if endpoint_schema.config is not null then
        select c.entries into _entries
        from jobq_private.config as c
        where c.config = endpoint_schema.config;
        if not found then
            perform jobq_private.raise_error('INVALID_CONFIG_REF', format(
                'config %s', endpoint_schema.config
            ));
        end if;
    end if;
    perform jobq_private.check_references(
        endpoint_schema.endpoint, endpoint_schema.spec, coalesce(_entries, '{}')
    );
    return _schema;
end
$$;

revoke all on function jobq_private.endpoint_schema from public;

comment on function jobq_private.endpoint_schema is
'Checks what an endpoint refers to, and gives its payload schema.';

-- Purpose: how a job is delivered: HTTP, KAFKA or REDIS_STREAM; null when a worker's handler
-- does it.
-- Invariant: what the job was made for, whatever has become of the endpoint; a job without
-- a delivery_version costs nothing. Raises: nothing.
create or replace function jobq_private.endpoint_type(kind text, delivery_version integer)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if endpoint_type.delivery_version is null then
        return null;
    end if;
    return (
        select v.document ->> 'type'
        from jobq_private.definition_version as v
        where v.type = 'delivery' and v.name = endpoint_type.kind
        and v.version = endpoint_type.delivery_version
    );
end
$$;

revoke all on function jobq_private.endpoint_type from public;

comment on function jobq_private.endpoint_type is
'How a job is delivered, or null when a handler does it.';

-- Purpose: why a JSON Schema (draft 2020-12) cannot be used to check the input of endpoints,
-- or null.
-- Invariant: what it refuses, clients and deliveries refuse too; a reference that leads round
-- for ever is left to them. Raises: nothing.
create or replace function jobq_private.json_schema_problem(schema jsonb)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem text;
begin
    with recursive part (value, path, is_map, depth) as (
        select json_schema_problem.schema, '$', false, 1
        union all
        select
            c.value, format('%s.%s', p.path, c.key), c.meaning = 'an object of schemas',
            p.depth + 1
        from part as p
        cross join lateral (
            select o.key, o.value, case when not p.is_map then m.meaning else 'a schema' end
            from jsonb_each(case jsonb_typeof(p.value) when 'object' then p.value end) as o
            cross join lateral jobq_private.schema_keyword(o.key, o.value) as m
            where p.is_map or m.is_met
            union all
            select (a.n - 1)::text, a.value, 'a schema'
            from jsonb_array_elements(
                case jsonb_typeof(p.value) when 'array' then p.value end
            ) with ordinality as a (value, n)
        ) as c (key, value, meaning)
        where c.meaning in ('a schema', 'an array of schemas', 'an object of schemas')
        and jsonb_typeof(c.value) in ('object', 'array') and p.depth <= 65
    )
    select format('%s.%s: %s', p.path, k.key, case
        when p.depth > 64 then 'nested too deeply'
        when not m.is_met then 'must be ' || m.meaning
        when k.key ~ '[rR]ef$' then 'there is no such place'
        else n.problem
    end)
    into _problem
    from part as p
    cross join lateral jsonb_each(
        case when jsonb_typeof(p.value) = 'object' and not p.is_map then p.value end
    ) as k
    left join lateral jobq_private.schema_keyword(k.key, k.value) as m on true
    left join lateral (
        select jobq_private.shared_pattern_problem(t.pattern)
        from (
            select k.value #>> '{}' where k.key = 'pattern'
            union all
            select o.name
            from jsonb_object_keys(case when m.is_met then k.value end) as o (name)
            where k.key = 'patternProperties'
        ) as t (pattern)
        where m.is_met and jobq_private.shared_pattern_problem(t.pattern) is not null
        limit 1
    ) as n (problem) on true
    where p.depth > 64 or not m.is_met or n.problem is not null
    or k.key = '$ref' and k.value #>> '{}' ~ '^#/[^%]*$'
        and not schema @? '$.**."$id"'
        and json_schema_problem.schema #> (
            select array_agg(replace(replace(t.step, '~1', '/'), '~0', '~') order by t.n)
            from string_to_table(substr(k.value #>> '{}', 3), '/') with ordinality as t (step, n)
        ) is null
    limit 1;
    return _problem;
end
$$;

revoke all on function jobq_private.json_schema_problem from public;

comment on function jobq_private.json_schema_problem is
'Says why a JSON Schema cannot be used to check the input of endpoints, or null.';

-- Purpose: whether a claim must leave a job alone, since its endpoint is paused; the job is then
-- put aside, once, in place of being leased.
-- Invariant: stamp_transition() asks for deliveries alone. The job is out of the way of later
-- claims, and what was claimed is decided by the endpoint's row: who resumes it has that
-- row's lock, so that nothing is put aside that resume_endpoint() does not see; while
-- somebody changes the row, the job only stays where it is. The endpoint's last test goes.
-- Raises: nothing.
create or replace function jobq_private.park_delivery(
    job_id uuid, endpoint text, run_at timestamptz
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (
        select from jobq_private.endpoint as e
        where e.endpoint = park_delivery.endpoint
        and e.paused_at is not null
        and e.test_job_id is distinct from park_delivery.job_id
    ) then
        return false;
    end if;
    perform from jobq_private.endpoint as e
    where e.endpoint = park_delivery.endpoint and e.paused_at is not null
    for share skip locked;
    if found then
        insert into jobq_private.parked_job as p (job_id, endpoint, run_at)
        values (park_delivery.job_id, park_delivery.endpoint, park_delivery.run_at)
        on conflict on constraint parked_job_pkey do update
        set run_at = excluded.run_at
        where excluded.run_at <> jobq_private.parked_until();
        update jobq_private.job as j
        set run_at = jobq_private.parked_until()
        where j.job_id = park_delivery.job_id;
    end if;
    return true;
end
$$;

revoke all on function jobq_private.park_delivery from public;

comment on function jobq_private.park_delivery is
'Says whether a claim must leave a job alone whose endpoint is paused, and puts it aside.';

-- Purpose: when jobs are due that wait for a paused endpoint: the last day that a job may have.
-- Invariant: a constant. Raises: nothing.
create or replace function jobq_private.parked_until()
returns timestamptz
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select timestamptz '9999-12-30 00:00:00 UTC'
$$;

revoke all on function jobq_private.parked_until from public;

comment on function jobq_private.parked_until is
'When jobs are due that wait for a paused endpoint.';

-- Purpose: give the jobs that an endpoint gets from now on what they are delivered by: the
-- endpoint, its payload spec and its retries, as one version under one number.
-- Invariant: jobs take the number from the same row of kind as the schema that they are
-- checked by, so it is exact whatever commits meanwhile. No endpoint, no version. Called
-- under the lock of begin_definition(). The endpoint's limits are those of its kind. Raises: nothing.
create or replace function jobq_private.pin_delivery(endpoint text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _document constant jsonb := (
        select jsonb_build_object(
            'endpoint_version', e.version, 'type', e.type, 'spec', e.spec,
            'config', e.config, 'payload_spec', e.payload_spec,
            'payload_spec_version', p.version, 'max_concurrency', e.max_concurrency,
            'max_per_second', e.max_per_second, 'retry', jsonb_build_object(
                'strategy', k.retry_strategy, 'initial_delay', k.retry_initial_delay,
                'max_delay', k.retry_max_delay, 'jitter', k.retry_jitter
            )
        )
        from jobq_private.endpoint as e
        join jobq_private.kind as k on k.kind = e.endpoint
        left join jobq_private.payload_spec as p on p.payload_spec = e.payload_spec
        where e.endpoint = pin_delivery.endpoint
    );
begin
    update jobq_private.kind as k
    set delivery_version = jobq_private.record_version(
        'delivery', pin_delivery.endpoint, _document
    )
    where k.kind = pin_delivery.endpoint and _document is not null;

    update jobq_private.kind as k
    set
        max_running = coalesce(e.max_concurrency, k.max_running),
        rate_limit = coalesce(r.rate_limit, k.rate_limit),
        rate_period = coalesce(r.rate_period, k.rate_period),
        rate_burst = coalesce(r.rate_burst, k.rate_burst)
    from jobq_private.endpoint as e
    cross join lateral jobq_private.endpoint_rate(e.max_per_second) as r
    where e.endpoint = pin_delivery.endpoint
    and k.kind = e.endpoint
    and num_nonnulls(e.max_concurrency, e.max_per_second) > 0;

    insert into jobq_private.pinned_definition (endpoint, type, name)
    select pin_delivery.endpoint, t.type, _document ->> t.type
    from unnest('{payload_spec,config}'::text[]) as t (type)
    where _document ->> t.type is not null
    on conflict do nothing;
end
$$;

revoke all on function jobq_private.pin_delivery from public;

comment on function jobq_private.pin_delivery is
'Gives the jobs that an endpoint gets from now on what they are delivered by.';

-- Purpose: keep a version of a definition, and give its number.
-- Invariant: a number stands for one document for ever, also when the definition is
-- deleted and made again; the same document again is no new version. Called between
-- begin_definition() and the end of its transaction. Raises: nothing.
create or replace function jobq_private.record_version(type text, name text, document jsonb)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _last jobq_private.definition_version;
begin
    select v.* into _last
    from jobq_private.definition_version as v
    where v.type = record_version.type and v.name = record_version.name
    order by v.version desc
    limit 1;

    if _last.document = record_version.document then
        return _last.version;
    end if;
    insert into jobq_private.definition_version (type, name, version, document)
    values (
        record_version.type, record_version.name, coalesce(_last.version, 0) + 1,
        record_version.document
    );
    return coalesce(_last.version, 0) + 1;
end
$$;

revoke all on function jobq_private.record_version from public;

comment on function jobq_private.record_version is
'Keeps a version of a definition, and gives its number.';

-- Purpose: say that a payload spec, config, secret or endpoint is not there.
-- Invariant: always raises.
-- Raises: 22004, 22023, JQ007.
create or replace function jobq_private.refuse_definition(type text, name text)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _codes constant text[] := array['PAYLOAD_SPEC_NOT_FOUND', 'CONFIG_NOT_FOUND',
        'SECRET_NOT_FOUND', 'ENDPOINT_NOT_FOUND'];
    _types constant text[] := '{payload_spec,config,secret,endpoint}'::text[];
    _place integer := array_position(_types, refuse_definition.type);
begin
    if refuse_definition.name is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'name');
    elsif _place is null then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'type must be payload_spec, config, secret or endpoint');
    end if;
    perform jobq_private.raise_error(_codes[_place], format(
        '%s %s', refuse_definition.type, refuse_definition.name
    ));
end
$$;

revoke all on function jobq_private.refuse_definition from public;

comment on function jobq_private.refuse_definition is
'Raises that a payload spec, config, secret or endpoint is not there.';

-- Purpose: what a keyword of JSON Schema (draft 2020-12) must be, and whether a value is that.
-- Invariant: an unknown keyword has no row; strict paths, so that an array is never taken for
-- its elements. Raises: nothing.
create or replace function jobq_private.schema_keyword(
    keyword text, value jsonb, out meaning text, out is_met boolean
)
returns record
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    select c.meaning, value @? c.path into meaning, is_met
    from (
        values
        ('$ref $dynamicRef', 'a place in the schema, or in the draft''s own',
            jsonpath 'strict $ ? (@ like_regex "^#" || @ starts with "https://json-schema.org/draft/2020-12/")'),
        ('$id', 'an address without a fragment', 'strict $ ? (@ like_regex "^[^#]*#?$")'),
        ('$anchor $dynamicAnchor', 'a plain name',
            'strict $ ? (@ like_regex "^[A-Za-z_][-A-Za-z0-9._]*$")'),
        ('$schema $comment title description format pattern contentEncoding'
            || ' contentMediaType', 'a text', 'strict $ ? (@.type() == "string")'),
        ('deprecated readOnly writeOnly uniqueItems', 'true or false',
            'strict $ ? (@.type() == "boolean")'),
        ('minimum maximum exclusiveMinimum exclusiveMaximum', 'a number',
            'strict $ ? (@.type() == "number")'),
        ('multipleOf', 'a number above 0', 'strict $ ? (@ > 0)'),
        ('minLength maxLength minItems maxItems minProperties maxProperties minContains'
            || ' maxContains', 'a whole number, 0 or more',
            'strict $ ? (@ >= 0 && @ == @.floor())'),
        ('enum examples', 'an array', 'strict $ ? (@.type() == "array")'),
        ('required', 'an array of different names',
            'strict $ ? (@.type() == "array" && !exists (@[*] ? (@.type() != "string")))'),
        ('dependentRequired', 'an object of arrays of names',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "array"
                || exists (@[*] ? (@.type() != "string")))))'),
        ('type', 'a type, or an array of different ones',
            'strict $ ? (@ like_regex "^(object|array|string|number|integer|boolean|null)$"
                || (@.type() == "array" && exists (@[*]) && !exists (@[*] ? (!(@ like_regex
                    "^(object|array|string|number|integer|boolean|null)$")))))'),
        ('not if then else items contains additionalProperties propertyNames contentSchema'
            || ' unevaluatedItems unevaluatedProperties', 'a schema',
            'strict $ ? (@.type() == "object" || @.type() == "boolean")'),
        ('allOf anyOf oneOf prefixItems', 'an array of schemas',
            'strict $ ? (@.type() == "array" && exists (@[*])
                && !exists (@[*] ? (@.type() != "object" && @.type() != "boolean")))'),
        ('$defs definitions dependentSchemas patternProperties properties',
            'an object of schemas',
            'strict $ ? (@.type() == "object"
                && !exists (@.* ? (@.type() != "object" && @.type() != "boolean")))')
    ) as c (keywords, meaning, path)
    where schema_keyword.keyword = any(string_to_array(c.keywords, ' '));
    if schema_keyword.keyword in ('required', 'type') and jsonb_typeof(value) = 'array' then
        is_met := is_met and jsonb_array_length(value) = (
            select count(distinct e.item) from jsonb_array_elements(value) as e (item)
        );
    end if;
end
$$;

revoke all on function jobq_private.schema_keyword from public;

comment on function jobq_private.schema_keyword is
'Returns what a keyword of JSON Schema must be, and whether a value is that.';

-- Purpose: why clients and deliveries, which match by RE2, cannot use a pattern, or null.
-- Invariant: what it lets through that RE2 does not know is found by clients when they put a
-- payload spec, and by deliveries. Raises: nothing.
create or replace function jobq_private.shared_pattern_problem(pattern text)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Escapes as they are, and without what stands in brackets.
    _bare constant text := regexp_replace(
        shared_pattern_problem.pattern, '\[\^?\]?(?:\\.|\[:\w+:\]|[^]\\])*\]', 'x', 'g'
    );
    -- And without escaped characters.
    _plain constant text := regexp_replace(
        _bare, '\\[pP]\{\^?\w+\}|\\.', 'x', 'g'
    );
begin
    if regexp_replace(_bare, '\\[\\]', 'x', 'g') ~ '\\[1-9k]' then
        return 'back references are not matched in linear time';
    elsif _plain ~ '\(\?<?[=!]' then
        return 'lookarounds are not matched in linear time';
    elsif _plain ~ '\(\?(?!:|P?<\w+>|[imsU-]+[:)])' or _plain ~ '^\*|[*+?}]\+' then
        return 'RE2 does not know this group or repetition';
    elsif regexp_replace(_bare, '\\[\\]', 'x', 'g') ~ '\\[^\W_aAbBCdDEfnpPQrsStvwWxz0]' then
        return 'RE2 does not know this escape';
    elsif _plain ~ '\{(\d{5,}|[2-9]\d{3}|1\d{2}[1-9]|1\d[1-9]\d|1[1-9]\d{2})[,}]' then
        return 'RE2 repeats at most 1000 times';
    elsif _bare !~ '\\[pPCQExz0]|\(\?P?<|\{[\d,]*\d{3}' then
        perform '' ~ shared_pattern_problem.pattern;
    end if;
    return null;
exception
    when invalid_regular_expression then
        return sqlerrm;
end
$$;

revoke all on function jobq_private.shared_pattern_problem from public;

comment on function jobq_private.shared_pattern_problem is
'Says why clients and deliveries cannot use a pattern, or null.';

-- Purpose: what a field of an endpoint's spec must be, and whether a value is that.
-- Invariant: strict paths, so that an array is never taken for its elements.
-- Raises: nothing.
create or replace function jobq_private.spec_field(
    class text, value jsonb, out meaning text, out is_met boolean
)
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Parts of an address, for like_regex; a template may stand for each of them.
    _label constant text :=
        '([^[:cntrl:][:space:][:punct:]]|[-_%]|[{][{][^}]*[}][}]){1,63}';
    _host constant text := format('([[][0-9A-Fa-f:.]+[]]|%1$s([.]%1$s)*[.]?)', _label);
    _port constant text :=
        '(0*([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]'
        || '|6553[0-5])|[{][{][^}]*[}][}])';
    _number constant text := '([0-9]{0,9}|[{][{][^}]*[}][}])';
begin
    select c.meaning, value @? c.path into meaning, is_met
    from (
        values
        ('any', 'any JSON', jsonpath '$'),
        ('text', 'a text', 'strict $ ? (@.type() == "string" && @ != "")'),
        ('fields', 'an object with a member, or a template that gives one',
            'strict $ ? ((@.type() == "object" && exists (@.*))
                || @ like_regex "^[{][{].*[}][}]$")'),
        ('texts', 'an object of texts',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string")))'),
        ('headers', 'an object of ASCII texts without line breaks, under names of HTTP'
            || ' that are not content-length or transfer-encoding',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string"))
                && !exists (@.keyvalue() ? (
                    !(@.key like_regex "^[-!#$%&''*+.^_`|~0-9A-Za-z]+$")
                    || @.key like_regex "^(content-length|transfer-encoding)$" flag "i"
                    || @.value like_regex "[^\\t -~]")))'),
        ('url', 'http:// or https://, a host without a user, a port up to 65535, and a path',
            format($path$strict $ ? (@ like_regex "^[{][{]" || @ like_regex
                "^https?://%s(:%s)?(([/?#]|[{][{])[^[:cntrl:]]*)?$" flag "i")$path$, _host, _port
            )::jsonpath),
        ('redis url', 'redis:// or rediss://, host, port and number of the database, or'
            || ' unix:// and a path, with no options but db, username, password, client_name'
            || ' and health_check_interval',
            format($path$strict $ ? (@ like_regex "^[{][{]" || @ like_regex
                "^(rediss?://([^/?#@]*@)?(%s(:%s)?)?(/%s)?|unix://([^/?#@]*@)?/[^?]*)([?]((db=%s|health_check_interval=%s|(username|password|client_name)=[^&]*)(&|$))*)?$")$path$,
                _host, _port, _number, _number, _number)::jsonpath),
        ('servers', 'hosts with their ports, and commas between them',
            format($path$strict $ ? (@ like_regex "^[{][{]" || @ like_regex
                "^ *(%1$s) *(, *(%1$s) *)*$")$path$,
                format('([A-Za-z_]+://)?%s(:%s)?', _host, _port))::jsonpath),
        ('topic', 'a topic of 1 to 249 letters, digits and ._-, or a template',
            'strict $ ? (@ like_regex "^[-._0-9A-Za-z]{1,249}$" && @ != "." && @ != ".."
                || @ like_regex "[{][{]")'),
        ('kafka options', 'an object of texts, under names that an endpoint may set, with'
            || ' values that Kafka knows',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string"))
                && !exists (@.keyvalue() ? (!(@.key like_regex
                    "^(security[.]protocol|sasl[.](mechanisms?|username|password)|ssl[.](ca[.]pem|certificate[.]pem|key[.]pem|key[.]password)|client[.]id|compression[.]type|linger[.]ms)$")
                    || !(@.value like_regex "[{][{]") && (
                        @.key == "security.protocol" && !(@.value like_regex
                            "^(sasl_)?(plaintext|ssl)$" flag "i")
                        || @.key like_regex "^sasl[.]mechanism" && !(@.value like_regex
                            "^(PLAIN|SCRAM-SHA-(256|512))$")
                        || @.key == "compression.type" && !(@.value like_regex
                            "^(none|gzip|snappy|lz4|zstd)$")
                        || @.key == "linger.ms" && !(@.value like_regex
                            "^[0-9]{1,5}([.][0-9]{1,9})?$")))))'),
        ('boolean', 'true or false', 'strict $ ? (@.type() == "boolean")'),
        ('method', 'GET, POST, PUT, PATCH or DELETE',
            'strict $ ? (@ like_regex "^(GET|POST|PUT|PATCH|DELETE)$")'),
        ('acks', '"0", "1" or "all"', 'strict $ ? (@ == "0" || @ == "1" || @ == "all")'),
        ('milliseconds', 'a whole number from 1 to 3600000',
            'strict $ ? (@ >= 1 && @ <= 3600000 && @ == @.floor())'),
        ('count', 'a whole number, or a template that gives one',
            'strict $ ? ((@ >= 0 && @ <= 1000000000000 && @ == @.floor())
                || @ like_regex "^[{][{].*[}][}]$")'),
        ('statuses', 'an array of HTTP status codes',
            'strict $ ? (@.type() == "array" && exists (@[*])
                && !exists (@[*] ? (@.type() != "number"
                    || !(@ >= 100 && @ <= 599 && @ == @.floor()))))')
    ) as c (class, meaning, path)
    where c.class = spec_field.class;
end
$$;

revoke all on function jobq_private.spec_field from public;

comment on function jobq_private.spec_field is
'Returns what a field of an endpoint''s spec must be, and whether a value is that.';

-- Purpose: store an endpoint that was checked, with its version and its secrets.
-- Invariant: called under the lock of begin_definition(), its kind being there.
-- Raises: nothing of its own.
create or replace function jobq_private.store_endpoint(
    endpoint text, type text, spec jsonb, payload_spec text, config text,
    max_concurrency integer, max_per_second double precision
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _version integer := jobq_private.record_version(
        'endpoint', store_endpoint.endpoint, jsonb_build_object(
            'type', store_endpoint.type, 'spec', store_endpoint.spec,
            'payload_spec', store_endpoint.payload_spec, 'config', store_endpoint.config,
            'max_concurrency', store_endpoint.max_concurrency,
            'max_per_second', store_endpoint.max_per_second
        )
    );
begin
    insert into jobq_private.endpoint (
        endpoint, type, payload_spec, config, spec, max_concurrency, max_per_second,
        version
    )
    values (
        store_endpoint.endpoint, store_endpoint.type, store_endpoint.payload_spec,
        store_endpoint.config, store_endpoint.spec, store_endpoint.max_concurrency,
        store_endpoint.max_per_second, _version
    )
    on conflict on constraint endpoint_pkey do update
    set
        type = excluded.type, payload_spec = excluded.payload_spec,
        config = excluded.config, spec = excluded.spec,
        max_concurrency = excluded.max_concurrency,
        max_per_second = excluded.max_per_second, version = excluded.version,
        updated_at = now();

    delete from jobq_private.endpoint_secret as s
    where s.endpoint = store_endpoint.endpoint;
    insert into jobq_private.endpoint_secret (endpoint, secret)
    select distinct store_endpoint.endpoint, r.path
    from jobq_private.template_references(store_endpoint.spec) as r
    where r.namespace = 'secret';
end
$$;

revoke all on function jobq_private.store_endpoint from public;

comment on function jobq_private.store_endpoint is
'Stores an endpoint that was checked, with its version and its secrets.';

-- Purpose: whether a field of an endpoint's spec may hold what an enqueuer chose.
-- Invariant: in a URL only after its host, which is never from input. Raises: nothing.
create or replace function jobq_private.takes_input(field text, spec jsonb)
returns boolean
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _before text;
begin
    if takes_input.field <> 'url' then
        return takes_input.field ~ '^(headers|\w+_template)$';
    end if;
    _before := regexp_replace(
        takes_input.spec ->> 'url', '\{\{\s*(input|job)\M.*$', ''
    );
    _before := regexp_replace(_before, '^\{\{.*?\}\}', 'https://x');
    return regexp_replace(_before, '\{\{.*?\}\}', 'x', 'g') ~* '^https?://[^/?#]+[/?#]';
end
$$;

revoke all on function jobq_private.takes_input from public;

comment on function jobq_private.takes_input is
'Says whether a field of an endpoint''s spec may hold what an enqueuer chose.';

-- Purpose: what the templates of an endpoint's spec refer to: field, namespace, path, and
-- whether there is a default.
-- Invariant: a reference that cannot be read has no namespace; names of members are no
-- templates; sign_with names a secret without braces. Raises: nothing.
create or replace function jobq_private.template_references(spec jsonb)
returns table (
    field text, namespace text, path text, written text, is_optional boolean
)
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select distinct
        s.key, r.parts[1], ltrim(r.parts[2], '.'), format('{{%s}}', m.found[1]),
        r.parts[3] is not null
    from jsonb_each(template_references.spec) as s
    cross join lateral jsonb_path_query(
        s.value, 'strict $.** ? (@.type() == "string")'
    ) as t (text)
    cross join lateral regexp_matches(t.text #>> '{}', '\{\{(.*?)\}\}', 'g') as m (found)
    left join lateral regexp_match(m.found[1],
        '^\s*(input|config|secret|job)((?:\.[\w-]+)*)'
        || '\s*(?:\?\?\s*("[^"\\]*"|-?\d+(?:\.\d+)?|true|false|null|\[\])\s*)?$'
    ) as r (parts) on r.parts[2] <> '' or r.parts[1] = 'input'
    union
    select 'sign_with', 'secret', template_references.spec ->> 'sign_with',
        template_references.spec ->> 'sign_with', false
    where template_references.spec ? 'sign_with';
end
$$;

revoke all on function jobq_private.template_references from public;

comment on function jobq_private.template_references is
'Returns what the templates of an endpoint''s spec refer to.';

-- Purpose: the version of a definition that held at a moment; its first, before that.
-- Invariant: versions of one definition follow each other in time. Raises: nothing.
create or replace function jobq_private.version_at(type text, name text, moment timestamptz)
returns jobq_private.definition_version
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _version jobq_private.definition_version;
begin
    select v.* into _version
    from jobq_private.definition_version as v
    where v.type = version_at.type and v.name = version_at.name
    order by
        v.created_at <= version_at.moment desc,
        case when v.created_at <= version_at.moment then -v.version else v.version end
    limit 1;
    return _version;
end
$$;

revoke all on function jobq_private.version_at from public;

comment on function jobq_private.version_at is
'Returns the version of a definition that held at a moment.';

-- Purpose: payload specs, configs, secrets and endpoints as JSON documents.
-- Invariant: no value of a secret, encrypted or not, is in it. Raises: nothing.
create or replace view jobq_private.definition as
select
    'payload_spec' as type,
    p.payload_spec as name,
    json_build_object(
        'name', p.payload_spec, 'schema', p.schema, 'version', p.version,
        'created_at', p.created_at, 'updated_at', p.updated_at
    ) as item
from jobq_private.payload_spec as p
union all
select
    'config',
    c.config,
    json_build_object(
        'name', c.config, 'values', c.entries, 'version', c.version,
        'created_at', c.created_at, 'updated_at', c.updated_at
    )
from jobq_private.config as c
union all
select
    'secret',
    s.secret,
    json_build_object(
        'name', s.secret, 'version', s.version,
        'created_at', s.created_at, 'updated_at', s.updated_at
    )
from jobq_private.secret as s
union all
select
    'endpoint',
    e.endpoint,
    json_build_object(
        'name', e.endpoint, 'type', e.type, 'payload_spec', e.payload_spec,
        'config', e.config, 'spec', e.spec,
        'retry_policy', json_build_object(
            'max_attempts', k.max_attempts,
            'backoff', k.retry_strategy,
            'initial_delay_ms', jobq_private.milliseconds(k.retry_initial_delay),
            'max_delay_ms', jobq_private.milliseconds(k.retry_max_delay)
        ),
        'queue', k.queue, 'max_concurrency', e.max_concurrency,
        'max_per_second', e.max_per_second, 'paused_at', e.paused_at,
        'pause_reason', e.pause_reason, 'version', e.version,
        'created_at', e.created_at, 'updated_at', e.updated_at
    )
from jobq_private.endpoint as e
join jobq_private.kind as k on k.kind = e.endpoint;

revoke all on table jobq_private.definition from public;

comment on view jobq_private.definition is
'Payload specs, configs, secrets and endpoints as JSON documents.';

-- Purpose: delete a payload spec, config, secret or endpoint; its versions stay.
-- Invariant: refused while an endpoint refers to it, and an endpoint while live jobs or
-- schedules of it exist; with an endpoint goes its kind.
-- Raises: 22004, 22023, JQ007, JQ008.
-- Never: DEFINITION_EXISTS.
-- Argument type: payload_spec, config, secret or endpoint.
-- Argument name: the definition's name.
-- Example: select jobq.delete_definition('config', 'unused');
create or replace function jobq.delete_definition(type text, name text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _type constant text := delete_definition.type;
    _name constant text := delete_definition.name;
    _endpoint text;
begin
    perform jobq_private.begin_definition(_type, _name, 'update');
    select d.endpoint into _endpoint
    from (
        select 'payload_spec' as type, e.payload_spec as name, e.endpoint
        from jobq_private.endpoint as e
        union all
        select 'config', e.config, e.endpoint
        from jobq_private.endpoint as e
        union all
        select 'secret', s.secret, s.endpoint
        from jobq_private.endpoint_secret as s
    ) as d
    where d.type = _type and d.name = _name
    order by d.endpoint
    limit 1;
    if found then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format('endpoint %s', _endpoint));
    elsif _type = 'payload_spec' then
        delete from jobq_private.payload_spec as p where p.payload_spec = _name;
    elsif _type = 'config' then
        delete from jobq_private.config as c where c.config = _name;
    elsif _type = 'secret' then
        delete from jobq_private.secret as s where s.secret = _name;
    else
        perform jobq.delete_kind(_name);
    end if;
end
$$;

revoke all on function jobq.delete_definition from public;
grant execute on function jobq.delete_definition to jobq_operator;

comment on function jobq.delete_definition is
'Deletes a payload spec, config, secret or endpoint; refused while something depends on it.';

-- Purpose: how deliveries to an endpoint went of late: how many succeeded, how long they took,
-- and by what the others failed.
-- Invariant: of the newest 1,000 attempts that ended in the period, read by two indexes, so
-- the cost does not grow. An attempt that was given back is none. Raises: 22004, 22023, JQ007.
-- Argument endpoint: its name.
-- Argument period: how far to look back, 1 s to 30 days.
-- Column since: since when the attempts are counted: the first of them, where there are 1,000.
-- Column attempts: how many ended.
-- Column succeeded: how many of them did.
-- Column failed: how many did not.
-- Column success_rate: the share of those that succeeded, 0 to 1; null for none.
-- Column p50_ms: half of them took no longer, from the claim to the end.
-- Column p95_ms: of twenty attempts nineteen took no longer.
-- Column p99_ms: of a hundred attempts 99 took no longer.
-- Column failures: an object: by its code, how many failed.
-- Example: select * from jobq.endpoint_stats('send-welcome');
create or replace function jobq.endpoint_stats(
    endpoint text, period interval default interval '1 hour'
)
returns table (
    since timestamptz, attempts bigint, succeeded bigint, failed bigint,
    success_rate double precision, p50_ms bigint, p95_ms bigint, p99_ms bigint,
    failures jsonb
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _since timestamptz;
begin
    if num_nulls(endpoint_stats.endpoint, endpoint_stats.period) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'endpoint or period');
    elsif endpoint_stats.period not between interval '1 s' and interval '30 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'period must be from 1 s to 30 days'
        );
    end if;
    perform jobq_private.check_endpoints(array[endpoint_stats.endpoint]);
    _since := now() - endpoint_stats.period;
    return query
    with ended as materialized (
        select e.finished_at, e.took, e.code
        from (
            (
                select a.finished_at, a.finished_at - a.claimed_at as took, null as code
                from jobq_private.job_archive as a
                where a.kind = endpoint_stats.endpoint
                and a.delivery_version is not null
                and a.state = 'succeeded'
                and a.finished_at >= _since
                order by a.finished_at desc
                limit 1000
            )
            union all
            (
                select f.finished_at, f.finished_at - f.started_at,
                    coalesce(f.error_code, 'ERROR')
                from jobq_private.attempt as f
                where f.endpoint = endpoint_stats.endpoint
                and f.state in ('retrying', 'dead')
                and f.finished_at >= _since
                order by f.finished_at desc
                limit 1000
            )
        ) as e
        order by e.finished_at desc
        limit 1000
    )
    select
        case when count(*) = 1000 then min(e.finished_at) else _since end,
        count(*), count(*) filter (where e.code is null), count(e.code),
        avg((e.code is null)::integer)::double precision,
        jobq_private.milliseconds(percentile_disc(0.5) within group (order by e.took)),
        jobq_private.milliseconds(percentile_disc(0.95) within group (order by e.took)),
        jobq_private.milliseconds(percentile_disc(0.99) within group (order by e.took)),
        (
            select coalesce(jsonb_object_agg(c.code, c.jobs), '{}')
            from (
                select x.code, count(*) as jobs
                from ended as x
                where x.code is not null
                group by x.code
            ) as c
        )
    from ended as e;
end
$$;

revoke all on function jobq.endpoint_stats from public;
grant execute on function jobq.endpoint_stats to jobq_operator, jobq_reader;

comment on function jobq.endpoint_stats is
'Tells how the deliveries to an endpoint went of late: rate of success, latency, failures.';

-- Purpose: all that a worker needs to deliver jobs of an endpoint, or no row when the kind
-- is no endpoint.
-- Invariant: delivery_version is the job's, and never stands for anything else; null is
-- what a new job would get. Secrets are as they are now, encrypted; the config as it is
-- now, or, for a job_id in a later attempt, as it was when the first began.
-- Raises: 22004.
-- Argument delivery_version: the version that the job was made for; null means the one
-- that a new job would get.
-- Argument job_id: the job, for the config that its first attempt ran with.
-- Returns: one row; none when the kind is no endpoint.
-- Column spec: where to and in what shape, its templates as they were declared.
-- Column version: the version of the endpoint.
-- Column schema: the JSON Schema of the payload; null without a payload spec.
-- Column config_entries: the values of the config; null without one.
-- Column config_version: the config's version.
-- Column config_valid_from: when that was declared.
-- Column secrets: an object: by its name, for each secret the key_id and the ciphertext
-- in base64.
-- Example: select type, spec, version from jobq.get_delivery('send-welcome');
create or replace function jobq.get_delivery(
    kind text, delivery_version integer default null, job_id uuid default null
)
returns table (
    type text, spec text, version integer, schema jsonb, config_entries text,
    config_version integer, config_valid_from timestamptz, secrets jsonb,
    max_concurrency integer, max_per_second double precision
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _started_at timestamptz := coalesce(
        jobq_private.execution_started_at(get_delivery.job_id), now()
    );
begin
    if get_delivery.kind is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'kind');
    end if;
    return query
    select
        v.document ->> 'type', v.document ->> 'spec',
        (v.document ->> 'endpoint_version')::integer, s.document -> 'schema',
        c.document ->> 'values', c.version, c.created_at,
        (
            select jsonb_object_agg(x.secret, jsonb_build_object(
                'key_id', x.key_id, 'ciphertext', encode(x.ciphertext, 'base64')
            ))
            from jobq_private.template_references(v.document -> 'spec') as r
            join jobq_private.secret as x on x.secret = r.path
            where r.namespace = 'secret'
        ),
        (v.document ->> 'max_concurrency')::integer,
        (v.document ->> 'max_per_second')::double precision
    from jobq_private.endpoint as e
    join jobq_private.kind as k on k.kind = e.endpoint
    join jobq_private.definition_version as v
        on v.type = 'delivery' and v.name = e.endpoint
        and v.version = coalesce(get_delivery.delivery_version, k.delivery_version)
    left join jobq_private.definition_version as s
        on s.type = 'payload_spec' and s.name = v.document ->> 'payload_spec'
        and s.version = (v.document ->> 'payload_spec_version')::integer
    left join lateral jobq_private.version_at(
        'config', v.document ->> 'config', _started_at
    ) as c on true
    where e.endpoint = get_delivery.kind;
end
$$;

revoke all on function jobq.get_delivery from public;
grant execute on function jobq.get_delivery to jobq_worker, jobq_operator;

comment on function jobq.get_delivery is
'Returns all that a worker needs to deliver jobs of an endpoint, its secrets encrypted.';

-- Purpose: every secret as it is encrypted, for its rotation to another key.
-- Invariant: nothing here can be read without the key. Raises: nothing.
-- Example: select secret, version, key_id from jobq.list_ciphertexts();
create or replace function jobq.list_ciphertexts()
returns table (secret text, version integer, key_id text, ciphertext bytea)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select s.secret, s.version, s.key_id, s.ciphertext
    from jobq_private.secret as s
    order by s.secret;
end
$$;

revoke all on function jobq.list_ciphertexts from public;
grant execute on function jobq.list_ciphertexts to jobq_operator;

comment on function jobq.list_ciphertexts is
'Returns every secret as it is encrypted, for its rotation to another key.';

-- Purpose: the versions of a payload spec, config, secret or endpoint, the newest first.
-- Invariant: of a secret there is only when it changed. Raises: 22004, 22023, JQ007.
-- Argument type: payload_spec, config, secret or endpoint.
-- Argument name: the definition's name.
-- Column document: what was declared; {} for a secret.
-- Example: select * from jobq.list_versions('config', 'email-service');
create or replace function jobq.list_versions(type text, name text)
returns table (version integer, document jsonb, created_at timestamptz)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        v.version,
        case when v.type = 'secret' then '{}'::jsonb else v.document end,
        v.created_at
    from jobq_private.definition_version as v
    where v.type = list_versions.type and v.name = list_versions.name
    order by v.version desc;
    if not found then
        perform jobq_private.refuse_definition(list_versions.type, list_versions.name);
    end if;
end
$$;

revoke all on function jobq.list_versions from public;
grant execute on function jobq.list_versions to jobq_operator, jobq_reader;

comment on function jobq.list_versions is
'Returns the versions of a payload spec, config, secret or endpoint, the newest first.';

-- Purpose: a page of payload specs, configs, secrets or endpoints by name; cursor as in
-- page_jobs().
-- Invariant: no value of a secret is in it. Raises: nothing.
-- Argument type: payload_spec, config, secret or endpoint.
-- Argument max_definitions: at most so many.
-- Example: select * from jobq.page_definitions('endpoint');
create or replace function jobq.page_definitions(
    type text, after text default null, max_definitions integer default 50
)
returns table (item json, cursor text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select t.item, case when t.n < count(*) over () then t.name end
    from (
        select d.item, d.name, row_number() over (order by d.name) as n
        from jobq_private.definition as d
        where d.type = page_definitions.type
        and (page_definitions.after is null or d.name > page_definitions.after)
        order by d.name
        limit page_definitions.max_definitions + 1
    ) as t
    order by t.n
    limit page_definitions.max_definitions;
end
$$;

revoke all on function jobq.page_definitions from public;
grant execute on function jobq.page_definitions to jobq_operator, jobq_reader;

comment on function jobq.page_definitions is
'Returns a page of payload specs, configs, secrets or endpoints as JSON documents.';

-- Purpose: stop deliveries to an endpoint; what runs goes on, and enqueueing too.
-- Invariant: no claim that begins after the commit delivers to it, but for test_endpoint().
-- Jobs that become due are put aside, each once, so they are in nobody's way; until
-- resume_endpoint() their run_at is the 30th of December 9999.
-- Raises: 22004, 22023, JQ007.
-- Argument endpoint: its name.
-- Argument reason: why, for explain() and the audit; at most 512 characters.
-- Example: select jobq.pause_endpoint('send-welcome', 'the provider is down');
create or replace function jobq.pause_endpoint(endpoint text, reason text default null)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if pause_endpoint.endpoint is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'endpoint');
    elsif length(pause_endpoint.reason) > 512 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'reason must have at most 512 characters'
        );
    end if;
    update jobq_private.endpoint as e
    set
        paused_at = coalesce(e.paused_at, now()),
        pause_reason = pause_endpoint.reason
    where e.endpoint = pause_endpoint.endpoint;
    if not found then
        perform jobq_private.raise_error(
            'ENDPOINT_NOT_FOUND', format('endpoint %s', pause_endpoint.endpoint)
        );
    end if;
    perform jobq_private.record_audit(
        'pause_endpoint', pause_endpoint.endpoint, pause_endpoint.reason
    );
end
$$;

revoke all on function jobq.pause_endpoint from public;
grant execute on function jobq.pause_endpoint to jobq_operator;

comment on function jobq.pause_endpoint is
'Stops deliveries to an endpoint; running ones go on, and its jobs wait.';

-- Purpose: declare a config, or replace it: values that the templates of endpoints name.
-- Invariant: attempts that start later use it; what an endpoint refers to is not taken
-- away.
-- Raises: 22004, 22023, JQ004, JQ007.
-- Never: PAYLOAD_SPEC_NOT_FOUND, SECRET_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Argument mode: put creates or replaces; create refuses a name that exists, update one
-- that does not.
-- Returns: the config as show_definition() returns it.
-- Example: select jobq.put_config('email-service', '{"api_base_url": "https://api.example.org"}');
create or replace function jobq.put_config(
    config text, entries jsonb, mode text default 'put'
)
returns json
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _version integer;
begin
    perform jobq_private.begin_definition('config', put_config.config, put_config.mode);
    if jsonb_typeof(put_config.entries) is distinct from 'object' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'entries must be an object');
    elsif jobq_private.has_huge_number(put_config.entries) then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'entries: a number beyond the range of a double');
    end if;
    perform jobq_private.check_references(e.endpoint, e.spec, put_config.entries)
    from jobq_private.endpoint as e
    where e.config = put_config.config;
    _version := jobq_private.record_version('config', put_config.config,
        jsonb_build_object('values', put_config.entries));

    insert into jobq_private.config as c (config, entries, version)
    values (put_config.config, put_config.entries, _version)
    on conflict on constraint config_pkey do update
    set entries = excluded.entries, version = excluded.version, updated_at = now()
    where c.version <> excluded.version;
    return jobq.show_definition('config', put_config.config);
exception
    when check_violation then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'config: 1 to 128 lowercase letters, digits, hyphens and underscores');
        return null;
end
$$;

revoke all on function jobq.put_config from public;
grant execute on function jobq.put_config to jobq_operator;

comment on function jobq.put_config is
'Declares a config, values that the templates of endpoints refer to, or replaces it.';

-- Purpose: declare an endpoint, or replace it: a kind whose jobs are delivered to an HTTP
-- target, a Kafka topic or a Redis stream.
-- Invariant: one kind and one endpoint of the same name; what its templates refer to is
-- there. Jobs that exist keep the version they were made under.
-- Raises: 22004, 22023, JQ004, JQ007.
-- Never: FUNCTION_DENIED, FUNCTION_NOT_FOUND, SCHEMA_INVALID, CONFIG_NOT_FOUND,
-- PAYLOAD_SPEC_NOT_FOUND, SECRET_NOT_FOUND.
-- Argument max_attempts: after how many failed deliveries a job is dead; 1 to 10000.
-- Argument queue: the queue of its jobs; null means the default.
-- Argument max_concurrency: how many of its jobs are delivered at a time by all workers, 1 to
-- 10000; null means 20 by each worker.
-- Argument max_per_second: how many of its jobs are delivered in a second by all workers, 0.001
-- to 1000000; null means no limit.
-- Argument payload_spec: the payload spec of its jobs; null means any payload.
-- Argument config: the config that its templates refer to; null means none.
-- Returns: the endpoint as show_definition() returns it.
-- Example: select jobq.put_endpoint('send-welcome', 'HTTP', '{"url": "{{config.api_base_url}}/welcome",
--     "body_template": {"user_id": "{{input.user_id}}"}}', config => 'email-service');
create or replace function jobq.put_endpoint(
    endpoint text,
    type text,
    spec jsonb,
    payload_spec text default null,
    config text default null,
    max_attempts integer default 1,
    retry_strategy text default 'exponential',
    retry_initial_delay interval default '1 s',
    retry_max_delay interval default '60 s',
    retry_jitter double precision default 0.25,
    queue text default null,
    max_concurrency integer default null,
    max_per_second double precision default null,
    mode text default 'put'
)
returns json
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _schema jsonb;
    _violated text;
begin
    perform jobq_private.begin_definition('endpoint', put_endpoint.endpoint,
        put_endpoint.mode);
    if put_endpoint.type is null or put_endpoint.spec is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'type or spec');
    end if;
    perform jobq_private.check_endpoint_spec(put_endpoint.type, put_endpoint.spec);
    _schema := jobq_private.endpoint_schema(
        put_endpoint.endpoint, put_endpoint.spec, put_endpoint.payload_spec,
        put_endpoint.config
    );
    perform jobq.put_kind(
        put_endpoint.endpoint, put_endpoint.queue,
        max_attempts => put_endpoint.max_attempts,
        timeout => interval '10 s' + interval '1 ms' * coalesce(
            (put_endpoint.spec ->> 'timeout_ms')::numeric, 10000
        ),
        retry_strategy => put_endpoint.retry_strategy,
        retry_initial_delay => put_endpoint.retry_initial_delay,
        retry_max_delay => put_endpoint.retry_max_delay,
        retry_jitter => put_endpoint.retry_jitter
    );
    perform jobq_private.set_payload_schema(put_endpoint.endpoint, _schema);
    perform jobq_private.store_endpoint(
        put_endpoint.endpoint, put_endpoint.type, put_endpoint.spec,
        put_endpoint.payload_spec, put_endpoint.config, put_endpoint.max_concurrency,
        put_endpoint.max_per_second
    );
    perform jobq_private.pin_delivery(put_endpoint.endpoint);
    return jobq.show_definition('endpoint', put_endpoint.endpoint);
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.endpoint', _violated);
        return null;
end
$$;

revoke all on function jobq.put_endpoint from public;
grant execute on function jobq.put_endpoint to jobq_operator;

comment on function jobq.put_endpoint is
'Declares an endpoint, a kind whose jobs are delivered over HTTP, to Kafka or to a Redis stream, or replaces it.';

-- Purpose: declare a payload spec, or replace it: a JSON Schema of what endpoints take.
-- Invariant: jobs that exist keep the version they were made under. Where the database
-- understands all of a schema, enqueue() refuses what does not fit; delivery always does.
-- Raises: 22004, 22023, JQ004, JQ006, JQ007.
-- Never: CONFIG_NOT_FOUND, SECRET_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Argument schema: a JSON Schema (draft 2020-12).
-- Returns: the payload spec as show_definition() returns it.
-- Example: select jobq.put_payload_spec('welcome', '{"type": "object", "required": ["user_id"]}');
create or replace function jobq.put_payload_spec(
    payload_spec text, schema jsonb, mode text default 'put'
)
returns json
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _version integer;
    _problem text;
begin
    perform jobq_private.begin_definition('payload_spec', put_payload_spec.payload_spec,
        put_payload_spec.mode);
    if jsonb_typeof(put_payload_spec.schema) is distinct from 'object' then
        perform jobq_private.raise_error('SCHEMA_INVALID', 'schema must be an object');
    end if;
    _problem := jobq_private.json_schema_problem(put_payload_spec.schema);
    if _problem is not null then
        perform jobq_private.raise_error('SCHEMA_INVALID', _problem);
    end if;
    _version := jobq_private.record_version('payload_spec', put_payload_spec.payload_spec,
        jsonb_build_object('schema', put_payload_spec.schema));

    insert into jobq_private.payload_spec as p (payload_spec, schema, version)
    values (put_payload_spec.payload_spec, put_payload_spec.schema, _version)
    on conflict on constraint payload_spec_pkey do update
    set schema = excluded.schema, version = excluded.version, updated_at = now()
    where p.version <> excluded.version;

    perform
        jobq_private.set_payload_schema(e.endpoint, put_payload_spec.schema),
        jobq_private.pin_delivery(e.endpoint)
    from jobq_private.endpoint as e
    where e.payload_spec = put_payload_spec.payload_spec;
    return jobq.show_definition('payload_spec', put_payload_spec.payload_spec);
exception
    when check_violation then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'payload_spec: 1 to 128 lowercase letters, digits, hyphens and underscores');
        return null;
end
$$;

revoke all on function jobq.put_payload_spec from public;
grant execute on function jobq.put_payload_spec to jobq_operator;

comment on function jobq.put_payload_spec is
'Declares a payload spec, the JSON Schema of what endpoints take, or replaces it.';

-- Purpose: store a secret that its owner has encrypted, or replace it.
-- Invariant: neither the secret nor its key is ever here; versions keep no ciphertext.
-- Raises: 22004, 22023, JQ004, JQ007.
-- Never: CONFIG_NOT_FOUND, PAYLOAD_SPEC_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Returns: the secret as show_definition() returns it, without its value.
-- Example: select jobq.put_secret('api_key', decode(repeat('00', 44), 'hex'), 'key-1');
create or replace function jobq.put_secret(
    secret text, ciphertext bytea, key_id text, mode text default 'put'
)
returns json
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _version integer;
begin
    perform jobq_private.begin_definition('secret', put_secret.secret, put_secret.mode);
    if put_secret.ciphertext is null or put_secret.key_id is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'ciphertext or key_id');
    end if;
    _version := jobq_private.record_version('secret', put_secret.secret,
        jsonb_build_object('sha256', encode(sha256(put_secret.ciphertext), 'hex')));

    insert into jobq_private.secret as s (secret, ciphertext, key_id, version)
    values (put_secret.secret, put_secret.ciphertext, put_secret.key_id, _version)
    on conflict on constraint secret_pkey do update
    set
        ciphertext = excluded.ciphertext, key_id = excluded.key_id,
        version = excluded.version, updated_at = now();
    return jobq.show_definition('secret', put_secret.secret);
exception
    when check_violation then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'secret: 1 to 128 lowercase letters, digits, hyphens and underscores, '
            || 'encrypted in 28 to 65564 bytes, key_id of 1 to 64 characters');
        return null;
end
$$;

revoke all on function jobq.put_secret from public;
grant execute on function jobq.put_secret to jobq_operator;

comment on function jobq.put_secret is
'Stores an encrypted secret, or replaces it.';

-- Purpose: allow deliveries to a paused endpoint again, and wake its workers.
-- Invariant: what was put aside gets its run_at back, and so its place in the order; what
-- was given another one meanwhile keeps that. Resuming an endpoint that is not paused
-- changes nothing.
-- Raises: 22004, JQ007.
-- Argument endpoint: its name.
-- Returns: how many jobs were put aside.
-- Example: select jobq.resume_endpoint('send-welcome');
create or replace function jobq.resume_endpoint(endpoint text)
returns bigint
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _parked uuid[];
    _due_at timestamptz[];
    _ids uuid[];
    _queues text[];
begin
    if resume_endpoint.endpoint is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'endpoint');
    end if;
    perform jobq_private.check_endpoints(array[resume_endpoint.endpoint]);
    update jobq_private.endpoint as e
    set paused_at = null, pause_reason = null
    where e.endpoint = resume_endpoint.endpoint and e.paused_at is not null;
    if not found then
        return 0;
    end if;

    with parked as (
        delete from jobq_private.parked_job as p
        where p.endpoint = resume_endpoint.endpoint
        returning p.job_id, p.run_at
    )
    select array_agg(p.job_id), array_agg(p.run_at) into _parked, _due_at from parked as p;
    _ids := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any (_parked)
        and j.run_at = jobq_private.parked_until()
        order by j.job_id
        for update
    );
    with due as (
        update jobq_private.job as j
        set run_at = p.run_at
        from unnest(_parked, _due_at) as p (job_id, run_at)
        where j.job_id = p.job_id and p.job_id = any (_ids)
        returning j.queue
    )
    select array_agg(distinct d.queue) into _queues from due as d;
    perform jobq_private.call_lanes(_ids);
    perform jobq_private.wake(coalesce(_queues, '{}'));
    perform jobq_private.record_audit('resume_endpoint', resume_endpoint.endpoint);
    return cardinality(_ids);
end
$$;

revoke all on function jobq.resume_endpoint from public;
grant execute on function jobq.resume_endpoint to jobq_operator;

comment on function jobq.resume_endpoint is
'Allows deliveries to a paused endpoint again, and returns how many jobs it had put aside.';

-- Purpose: replace the ciphertext of a secret by one of the same value under another key.
-- Invariant: only the version that was read is replaced, and stays that version.
-- Raises: 22004, 22023, JQ007.
-- Never: DEFINITION_EXISTS, CONFIG_NOT_FOUND, PAYLOAD_SPEC_NOT_FOUND,
-- ENDPOINT_NOT_FOUND.
-- Argument version: the version that was read, as list_ciphertexts() gives it.
-- Returns: whether it was replaced; false when it has been changed meanwhile.
-- Example: select jobq.rotate_secret('api_key', 1, decode(repeat('01', 44), 'hex'), 'key-2');
create or replace function jobq.rotate_secret(
    secret text, version integer, ciphertext bytea, key_id text
)
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.begin_definition('secret', rotate_secret.secret, 'update');
    update jobq_private.secret as s
    set ciphertext = rotate_secret.ciphertext, key_id = rotate_secret.key_id
    where s.secret = rotate_secret.secret and s.version = rotate_secret.version;
    return found;
exception
    when check_violation or not_null_violation then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'ciphertext of 28 to 65564 bytes, key_id of 1 to 64 characters');
        return null;
end
$$;

revoke all on function jobq.rotate_secret from public;
grant execute on function jobq.rotate_secret to jobq_operator;

comment on function jobq.rotate_secret is
'Replaces the ciphertext of a secret by one under another key, if its version still holds.';

-- Purpose: one payload spec, config, secret or endpoint as a JSON document.
-- Invariant: no value of a secret is in it. Raises: 22004, 22023, JQ007.
-- Argument type: payload_spec, config, secret or endpoint.
-- Argument name: the definition's name.
-- Returns: a JSON object: name, version, created_at and updated_at; of a payload spec
-- schema, of a config values, of an endpoint type, spec, payload_spec, config, queue,
-- max_concurrency, max_per_second, paused_at, pause_reason and retry_policy (max_attempts,
-- backoff, initial_delay_ms, max_delay_ms).
-- Example: select jobq.show_definition('endpoint', 'send-welcome');
create or replace function jobq.show_definition(type text, name text)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _item json;
begin
    select d.item into _item
    from jobq_private.definition as d
    where d.type = show_definition.type and d.name = show_definition.name;
    if not found then
        perform jobq_private.refuse_definition(show_definition.type, show_definition.name);
    end if;
    return _item;
end
$$;

revoke all on function jobq.show_definition from public;
grant execute on function jobq.show_definition to jobq_operator, jobq_reader;

comment on function jobq.show_definition is
'Returns a payload spec, config, secret (without its value) or endpoint as a document.';

-- Purpose: have one job delivered to an endpoint at once, also while that is paused.
-- Invariant: a job like any other, with one attempt and the highest priority; of a paused
-- endpoint only the last test is delivered.
-- Raises: 22004, 22023, JQ005, JQ006, JQ007, JQ010.
-- Never: DEDUP_CONFLICT, JOB_NOT_FOUND, BATCH_NOT_FOUND, ILLEGAL_STATE.
-- Argument endpoint: its name.
-- Returns: the id of the job, whose result is what the target answered.
-- Example: select jobq.test_endpoint('send-welcome', '{"user_id": "u1"}');
create or replace function jobq.test_endpoint(endpoint text, payload jsonb default '{}')
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job_id uuid;
begin
    if test_endpoint.endpoint is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'endpoint');
    end if;
    perform jobq_private.check_endpoints(array[test_endpoint.endpoint]);
    _job_id := jobq.enqueue(
        test_endpoint.endpoint, test_endpoint.payload, priority => 32767,
        max_attempts => 1, metadata => '{"test": true}'
    );
    update jobq_private.endpoint as e
    set test_job_id = _job_id
    where e.endpoint = test_endpoint.endpoint;
    return _job_id;
end
$$;

revoke all on function jobq.test_endpoint from public;
grant execute on function jobq.test_endpoint to jobq_operator;

comment on function jobq.test_endpoint is
'Has one job delivered to an endpoint at once, also while that is paused, and returns its id.';

reset role;

-- Deploy jobq:work to pg
-- Made by sql/snapshot.py from sql/work/: edit that.
set local role jobq_owner;

-- Purpose: whether every live worker of a queue has met this kind and has no handler for it.
-- Invariant: reads only; false where no worker serves the queue, and for functions of the
-- database, which every worker can have run. Raises: nothing.
create or replace function jobq_private.is_unknown(kind text, queue text)
returns boolean
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(bool_and(is_unknown.kind = any(w.except_kinds)), false)
    from jobq_private.worker as w
    where is_unknown.queue = any(w.queues)
    and w.seen_at > now() - interval '1 min'
    and not exists (
        select from jobq_private.kind as k where k.kind = is_unknown.kind and k.run is not null
    )
$$;

revoke all on function jobq_private.is_unknown from public;

comment on function jobq_private.is_unknown is
'Whether no live worker of a queue has a handler for this kind.';

-- Purpose: when the next job of these queues becomes runnable, for an idle worker's sleep.
-- Invariant: one index probe for each queue, and for its priorities a scan that skips to those
-- with a job due earlier (before PostgreSQL 18 a probe for each); paused queues do not count. A
-- moment in the past means that there is work now. Where no lane has work anywhere, many queues
-- are not asked for theirs. Raises: 22004.
-- Argument except_kinds: kinds whose jobs do not count; null for none.
-- Returns: the instant; one in the past when there is work now, null when none waits.
-- Example: select jobq.next_due('{default}');
create or replace function jobq.next_due(queues text[], except_kinds text[] default null)
returns timestamptz
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _skips constant boolean := current_setting('server_version_num')::integer >= 180000;
    _has_lanes boolean := true;
begin
    if next_due.queues is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queues');
    elsif cardinality(next_due.queues) > 16 then
        _has_lanes := exists (select from jobq_private.lane as l)
            or exists (select from jobq_private.lane_call as c);
    end if;
    return (
        select case when m.due < 'infinity' then greatest(m.due, '0001-01-02 UTC') end
        from (
            select min(
                case when p.is_limited
                    then greatest(d.run_at, jobq_private.queue_opens_at(q.queue)) else d.run_at
                end
            ) as due
            from unnest(next_due.queues) as q (queue)
            left join lateral (
                select j.priority, j.run_at
                from jobq_private.job as j
                where j.queue = q.queue
                and j.state in ('queued', 'retrying')
                and j.lane_id is null
                and (next_due.except_kinds is null or j.kind <> all(next_due.except_kinds))
                order by j.priority desc, j.run_at
                limit 1
            ) as f on true
            left join lateral (
                with recursive head as (
                    select f.priority, f.run_at
                    where f.run_at is not null
                    union all
                    select h.priority, h.run_at
                    from head as l
                    cross join lateral (
                        select j.priority, j.run_at
                        from jobq_private.job as j
                        where j.queue = q.queue
                        and j.state in ('queued', 'retrying')
                        and j.lane_id is null
                        and j.priority < l.priority
                        and j.run_at < case when _skips then l.run_at else 'infinity' end
                        and (
                            next_due.except_kinds is null
                            or j.kind <> all(next_due.except_kinds)
                        )
                        order by j.priority desc, j.run_at
                        limit 1
                    ) as h
                )
                select min(h.run_at) as run_at from head as h
            ) as e on f.run_at > now()
            cross join lateral (
                select least(
                    f.run_at, e.run_at,
                    case when _has_lanes then jobq_private.next_lane(q.queue, next_due.except_kinds) end
                )
            ) as d (run_at)
            left join lateral (
                select
                    k.paused_at is not null as is_paused,
                    num_nonnulls(k.max_running, k.rate_limit) > 0 as is_limited
                from jobq_private.queue as k
                where k.queue = q.queue and d.run_at is not null
            ) as p on true
            where d.run_at is not null and p.is_paused is not true
        ) as m
    );
end
$$;

revoke all on function jobq.next_due from public;
grant execute on function jobq.next_due to jobq_worker, jobq_reader;

comment on function jobq.next_due is
'Returns when the next job of these queues becomes runnable, or null when none waits.';

-- Purpose: refuse a claim that cannot be meant.
-- Invariant: reads nothing. Raises: 22004, 22023.
create or replace function jobq_private.check_claim(
    queues text[], worker text, max_jobs integer, except_kinds text[] default null
)
returns void
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if array_ndims(queues) > 1 or array_ndims(except_kinds) > 1 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'queues and except_kinds must have one dimension'
        );
    elsif queues is null or array_position(queues, null) is not null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queues');
    elsif array_position(except_kinds, null) is not null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'except_kinds');
    elsif worker is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'worker');
    elsif max_jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs');
    elsif length(worker) not between 1 and 256 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'worker must have 1 to 256 characters'
        );
    elsif max_jobs not between 0 and 10000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_jobs must be from 0 to 10000'
        );
    end if;
end
$$;

revoke all on function jobq_private.check_claim from public;

comment on function jobq_private.check_claim is
'Refuses a claim that cannot be meant.';

-- Purpose: refuse a settlement whose parts do not fit together.
-- Invariant: reads the limits only when there are results. Raises: 22004, 22023,
-- JQ005, JQ006.
create or replace function jobq_private.check_results(
    job_ids uuid[], attempts integer[], results jsonb
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem text[];
begin
    if job_ids is null or attempts is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_ids and attempts');
    elsif cardinality(job_ids) <> cardinality(attempts) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'job_ids and attempts must have one length'
        );
    elsif results is null then
        return;
    elsif jsonb_typeof(results) <> 'array'
        or jsonb_array_length(results) <> cardinality(job_ids)
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'results must be a JSON array as long as job_ids'
        );
    end if;

    select array[c.problem[1], format('result %s: %s', r.n, c.problem[2])] into _problem
    from jsonb_array_elements(results) with ordinality as r (result, n)
    cross join jobq_private.setting as g
    cross join lateral (
        select jobq_private.value_problem(
            r.result, octet_length(r.result::text), g.max_payload_bytes, g.max_payload_depth
        ) as problem
    ) as c
    where c.problem is not null
    limit 1;
    if found then
        perform jobq_private.raise_error(_problem[1], _problem[2]);
    end if;
end
$$;

revoke all on function jobq_private.check_results from public;

comment on function jobq_private.check_results is
'Refuses a settlement whose parts do not fit together.';

-- Purpose: of many queues those in which a claim may find something, in the same order.
-- Invariant: an index probe for each queue, where looking at each would cost a claim of a
-- thousand empty ones most of its time. A queue in which the session has kept its place counts,
-- since a probe would walk what lies dead before that. Raises: nothing.
create or replace function jobq_private.claimable_queues(queues text[])
returns text[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    -- Where an index scan cannot skip, a bound would have it read all that is due later.
    _bound constant timestamptz := case
        when current_setting('server_version_num')::integer < 180000 then 'infinity'
        else clock_timestamp()
    end;
    _has_lanes constant boolean := exists (select from jobq_private.lane as l)
        or exists (select from jobq_private.lane_call as c);
begin
    return array(
        select q.queue
        from unnest(claimable_queues.queues) with ordinality as q (queue, n)
        where current_setting('jobq.mark_' || (hashtext(q.queue) & 1023), true) <> ''
        or (
            select true
            from jobq_private.job as j
            where j.queue = q.queue
            and j.state in ('queued', 'retrying')
            and j.lane_id is null
            and j.run_at <= _bound
            limit 1
        )
        or _has_lanes and (
            (select true from jobq_private.lane_call as c where c.queue = q.queue limit 1)
            or (
                select true
                from jobq_private.lane as l
                where l.queue = q.queue and l.state <> 'full'
                limit 1
            )
            or (
                select true
                from jobq_private.lane as l
                where l.queue = q.queue and l.gate_id is not null
                limit 1
            )
        )
        order by q.n
    );
end
$$;

revoke all on function jobq_private.claimable_queues from public;

comment on function jobq_private.claimable_queues is
'Of many queues those in which a claim may find something.';

-- Purpose: the highest priority below this one that has a job of the queue due by then, or
-- null.
-- Invariant: from PostgreSQL 18 on one scan of job_ready_idx, which skips from priority to
-- priority by itself, and reads on where they lie close together; before, a probe for each
-- priority in use. Raises: nothing.
create or replace function jobq_private.due_priority(
    queue text, priority integer, by_then timestamptz
)
returns integer
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    -- Where an index scan cannot skip, a bound would have it read what lies between.
    _bound constant timestamptz := case
        when current_setting('server_version_num')::integer < 180000 then 'infinity'
        else due_priority.by_then
    end;
begin
    return (
        with recursive head as (
            select due_priority.priority, 'infinity'::timestamptz as run_at
            union all
            select h.priority, h.run_at
            from head as l
            cross join lateral (
                select j.priority::integer, j.run_at
                from jobq_private.job as j
                where j.queue = due_priority.queue
                and j.state in ('queued', 'retrying')
                and j.lane_id is null
                and j.priority < l.priority
                and j.run_at <= _bound
                order by j.priority desc, j.run_at
                limit 1
            ) as h
            where l.run_at > due_priority.by_then
        )
        select h.priority from head as h
        where h.run_at <= due_priority.by_then
        limit 1
    );
end
$$;

revoke all on function jobq_private.due_priority from public;

comment on function jobq_private.due_priority is
'Returns the highest priority below this one that has a job due, or null.';

-- Purpose: which of these running jobs another transaction holds, so that a call which changes
-- them would wait for it.
-- Invariant: the others are locked for the caller, by the primary key; waits for nobody.
-- Raises: nothing.
create or replace function jobq_private.held_jobs(job_ids uuid[])
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _free uuid[];
begin
    _free := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(held_jobs.job_ids) and j.lease_expires_at is not null
        for update skip locked
    );
    return array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(held_jobs.job_ids)
        and j.lease_expires_at is not null
        and j.job_id <> all(_free)
    );
end
$$;

revoke all on function jobq_private.held_jobs from public;

comment on function jobq_private.held_jobs is
'Which of these jobs another transaction holds; the others are locked.';

-- Purpose: have the session's next claims of a queue go on where this one ended, when three
-- looks at its head in a row were slow: a pinned snapshot keeps their dead entries.
-- Invariant: the next look is due after twenty times what the last one took (it walks the
-- entries twice), so looks cost a tenth of the time at most, and what is more urgent or was
-- put back waits no longer than that. A mark is a hint: a wrong one, as behind a pooler,
-- costs a look. Raises: nothing.
create or replace function jobq_private.keep_mark(mark jobq_private.claim_mark)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO'
as $$
declare
    _mark jobq_private.claim_mark := mark;
begin
    if mark.is_look then
        _mark.slow_looks :=
            case when mark.took > interval '0.5 ms' then mark.slow_looks + 1 else 0 end;
        _mark.look_at := case
            when _mark.slow_looks >= 3 and mark.priority is not null
                then clock_timestamp() + greatest(20 * mark.took, interval '10 ms')
        end;
        _mark.is_look := false;
        _mark.took := '0';
    end if;
    perform set_config('jobq.mark_' || (hashtext(mark.queue) & 1023), _mark::text, false);
end
$$;

revoke all on function jobq_private.keep_mark from public;

comment on function jobq_private.keep_mark is
'Has the next claims of the session go on where this one ended.';

-- Purpose: the details of a failure as they are stored: what is too large or too deep to be
-- read again is left out, with the reason, for the failure itself must be told; so is what is
-- secret.
-- Invariant: the limits are those of a payload, read only where there are details.
-- Raises: nothing. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.kept_details(details jsonb)
returns jsonb
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem text[];
begin
    if details is not null then
        select jobq_private.value_problem(
            details, octet_length(details::text), g.max_payload_bytes, g.max_payload_depth
        ) into _problem
        from jobq_private.setting as g;
    end if;
    return case
        when _problem is null then jobq_private.redacted_json(details)
        else jsonb_build_object('omitted', _problem[2])
    end;
end
$$;

revoke all on function jobq_private.kept_details from public;

comment on function jobq_private.kept_details is
'Returns the details of a failure as they are stored.';

-- Purpose: the row with which exchange() tells of an attempt that is no new job.
-- Invariant: only job_id and attempt are set. Raises: nothing.
create or replace function jobq_private.lost_job(job_id uuid, attempt integer)
returns jobq.claimed_job
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select row(
        job_id, attempt, null, null, null, null, null, null, null, null, null, null,
        null, null
    )::jobq.claimed_job
$$;

revoke all on function jobq_private.lost_job from public;

comment on function jobq_private.lost_job is
'The row that tells of an attempt that is no new job.';

-- Purpose: where a claim goes on in a queue: at the first call (mark null) where the session's
-- last claim ended, while keep_mark() says so; else at the head of the next lower priority
-- that has a job due.
-- Invariant: reads one entry of job_ready_idx, where that is due, and how long it took tells
-- what lies dead before it. priority is null when none is left. Raises: nothing.
create or replace function jobq_private.next_mark(queue text, mark jobq_private.claim_mark)
returns jobq_private.claim_mark
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO'
as $$
declare
    _started constant timestamptz := clock_timestamp();
    _mark jobq_private.claim_mark := mark;
    _run_at timestamptz;
begin
    if mark.queue is null then
        _mark := nullif(
            current_setting('jobq.mark_' || (hashtext(next_mark.queue) & 1023), true), ''
        )::jobq_private.claim_mark;
        if _mark.queue = next_mark.queue and _mark.look_at > _started then
            return _mark;
        end if;
        _mark := row(
            next_mark.queue, 32768, '-infinity', null, '0', coalesce(_mark.slow_looks, 0),
            null, true
        );
    elsif not mark.is_look then
        _mark.priority := 32768;
        _mark.is_look := true;
    end if;

    select j.priority, j.run_at into _mark.priority, _run_at
    from jobq_private.job as j
    where j.queue = next_mark.queue
    and j.state in ('queued', 'retrying')
    and j.lane_id is null
    and j.priority < _mark.priority
    order by j.priority desc, j.run_at
    limit 1;
    if _run_at > _started then
        _mark.priority := jobq_private.due_priority(next_mark.queue, _mark.priority, _started);
    end if;
    _mark.run_at := '-infinity';
    _mark.job_id := '00000000-0000-0000-0000-000000000000';
    _mark.took := _mark.took + (clock_timestamp() - _started);
    return _mark;
end
$$;

revoke all on function jobq_private.next_mark from public;

comment on function jobq_private.next_mark is
'Says where a claim goes on in a queue.';

-- Purpose: send a notification at commit, unless the session has said: set jobq.notify = off.
-- Invariant: a transaction that has notified cannot be prepared (PREPARE TRANSACTION), so
-- one that will be says so; polling alone is enough. A notification queue that is half full
-- is left alone too. Raises: nothing.
create or replace function jobq_private.notify(channel text, payload text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if pg_notification_queue_usage() < 0.5
        and coalesce(current_setting('jobq.notify', true), '') <> 'off'
    then
        perform pg_notify(notify.channel, notify.payload);
    end if;
end
$$;

revoke all on function jobq_private.notify from public;

comment on function jobq_private.notify is
'Sends a notification at commit, where the session allows it and there is room.';

-- Purpose: say precisely why an attempt does not hold a job.
-- Invariant: always raises. Raises: 22004, JQ001, JQ003.
create or replace function jobq_private.refuse_attempt(job_id uuid, attempt integer)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _state text;
    _attempt integer;
begin
    if refuse_attempt.job_id is null or refuse_attempt.attempt is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_id and attempt');
    end if;
    select j.state, j.attempt into _state, _attempt
    from jobq.get_job(refuse_attempt.job_id) as j;
    perform jobq_private.raise_error('LEASE_LOST', format(
        'job_id %s, attempt %s: the job is %s at attempt %s',
        refuse_attempt.job_id, refuse_attempt.attempt, _state, _attempt
    ));
end
$$;

revoke all on function jobq_private.refuse_attempt from public;

comment on function jobq_private.refuse_attempt is
'Raises why an attempt does not hold a job.';

-- Purpose: end failed attempts: retrying while attempts are left, else dead; cancelled
-- where that was asked for meanwhile.
-- Invariant: rows are found by the primary key alone, whatever the statistics say, and
-- locked in the order of their ids, so batches cannot deadlock; only
-- the attempt that holds the lease counts. Attempts are recorded, lanes left, and those that are
-- dead or cancelled moved into the archive, in one step each, as triggers do for a job that changes
-- alone; the archive's foreign key checks the change. An expired lease retries at once, anything
-- else after its backoff.
-- Raises: nothing of its own.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT.
create or replace function jobq_private.settle_failures(
    failures jobq_private.failure[], is_expiry boolean
)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    _max_expiries constant integer := (select g.max_expiries from jobq_private.setting as g);
    _ids constant uuid[] := array(select f.job_id from unnest(settle_failures.failures) as f);
    _jobs uuid[];
    _attempts integer[];
    _states text[];
    _has_places boolean;
    _outcome text;
begin
    perform set_config('jobq.notes_attempts', 'on', true);
    with held as materialized (
        select
            j.job_id, j.kind, j.queue, j.delivery_version, j.attempt - j.uncounted as spent,
            j.claimed_at, j.worker,
            f.error, f.error_code, f.retry_in, f.details,
            case
                when j.cancel_requested_at is not null then 'cancelled'
                when not coalesce(f.retryable, true) then 'dead'
                when j.attempt - j.uncounted >= j.max_attempts then 'dead'
                when settle_failures.is_expiry and j.expiries + 1 >= _max_expiries
                then 'dead'
                else 'retrying'
            end as outcome,
            num_nonnulls(j.lane_id, j.place) > 0 as has_place
        from unnest(settle_failures.failures) as f
        join jobq_private.job as j
            on j.job_id = any(_ids)
            and j.job_id = f.job_id
            and j.attempt = f.attempt
            and j.lease_expires_at is not null
        order by j.job_id
        for update of j
    ),
    changed as (
        update jobq_private.job as j
        set
            state = case h.outcome when 'retrying' then h.outcome else j.state end,
            expiries = j.expiries + settle_failures.is_expiry::integer,
            last_error = left(h.error, 512),
            last_error_code = left(h.error_code, 128),
            last_error_details = h.details,
            run_at = case
                when h.outcome <> 'retrying' then j.run_at
                when settle_failures.is_expiry then clock_timestamp()
                else clock_timestamp() + coalesce(h.retry_in, (
                    select jobq.backoff(
                        p.retry_strategy, p.retry_initial_delay, p.retry_max_delay,
                        p.retry_jitter, h.spent
                    )
                    from jobq_private.retry_policy_for(
                        h.kind, h.queue, h.delivery_version
                    ) as p
                ))
            end
        from held as h
        where j.job_id = any(_ids)
        and j.job_id = h.job_id
        returning
            j.job_id, j.attempt, h.outcome, h.has_place, h.claimed_at, h.worker,
            j.last_error_code, j.last_error, j.last_error_details, j.region,
            case when j.delivery_version is not null then j.kind end as endpoint
    ),
    noted as (
        insert into jobq_private.attempt (
            job_id, attempt, state, started_at, finished_at, worker, error_code, error,
            error_details, endpoint, region
        )
        select
            c.job_id, c.attempt, c.outcome, c.claimed_at, clock_timestamp(), c.worker,
            case when c.outcome <> 'cancelled' then c.last_error_code end,
            case when c.outcome <> 'cancelled' then c.last_error end,
            case when c.outcome <> 'cancelled' then c.last_error_details end,
            c.endpoint, c.region
        from changed as c
    )
    select
        array_agg(c.job_id), array_agg(c.attempt), array_agg(c.outcome), bool_or(c.has_place)
    into _jobs, _attempts, _states, _has_places
    from changed as c;
    perform set_config('jobq.notes_attempts', '', true);
    if _has_places then
        perform jobq_private.leave_lanes(_jobs, _states);
    end if;

    foreach _outcome in array '{dead,cancelled}'::text[] loop
        perform jobq_private.archive_jobs(
            array_agg(s.job_id), array_agg(s.attempt), _outcome, null, false
        )
        from unnest(_jobs, _attempts, _states) as s (job_id, attempt, state)
        where s.state = _outcome
        having count(*) > 0;
    end loop;
    return query
    select s.job_id, s.attempt, s.state
    from unnest(_jobs, _attempts, _states) as s (job_id, attempt, state);
end
$$;

revoke all on function jobq_private.settle_failures from public;

comment on function jobq_private.settle_failures is
'Ends failed attempts as retrying, dead or cancelled.';

-- Purpose: finish what a batch that passes over held jobs has left, at these positions, but is
-- not held after all: by a savepoint of this transaction, or by several that only look.
-- Invariant: what moves here is locked before, so nothing waits.
-- Returns the positions of those that did not move. Raises: nothing of its own.
create or replace function jobq_private.settle_rest(
    job_ids uuid[], attempts integer[], results jsonb, positions bigint[]
)
returns bigint[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _held constant uuid[] := jobq_private.held_jobs(
        array(select job_ids[n] from unnest(positions) as n)
    );
    _late constant bigint[] := array(
        select n
        from unnest(positions) as n
        join jobq_private.job as j
            on j.job_id = job_ids[n]
            and j.attempt = attempts[n]
            and j.lease_expires_at is not null
        where j.job_id <> all(_held)
    );
begin
    if _late <> '{}' then
        perform jobq_private.archive_jobs(
            array(select job_ids[n] from unnest(_late) as n),
            array(select attempts[n] from unnest(_late) as n),
            'succeeded',
            (select jsonb_agg(results -> (n - 1)::integer) from unnest(_late) as n),
            false
        );
    end if;
    return array(select n from unnest(positions) as n where n <> all(_late));
end
$$;

revoke all on function jobq_private.settle_rest from public;

comment on function jobq_private.settle_rest is
'Finishes what a batch has left but nobody holds, and returns the positions of the rest.';

-- Purpose: finish attempts as succeeded; results is a JSON array parallel to the ids.
-- Invariant: each attempt counts once; a stale one changes nothing. With skip_held, what
-- another transaction holds is left alone; what a savepoint of this one holds is not.
-- Returns the positions, from 1, of those that did not move; null for none.
-- Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.settle_successes(
    job_ids uuid[], attempts integer[], results jsonb, skip_held boolean
)
returns bigint[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _moved integer;
    _finished_at timestamptz;
    _left bigint[];
    _gone uuid[];
    _gone_attempts integer[];
begin
    perform jobq_private.check_results(job_ids, attempts, results);
    select a.moved, a.finished_at, a.gone, a.gone_attempts
    into _moved, _finished_at, _gone, _gone_attempts
    from jobq_private.archive_jobs(
        job_ids, attempts, 'succeeded', results, skip_held
    ) as a;
    if _moved = cardinality(job_ids) then
        return null;
    end if;
    _left := array(
        select s.n
        from unnest(job_ids, attempts) with ordinality as s (job_id, attempt, n)
        where not exists (
            select from jobq_private.job_archive as a
            where a.job_id = s.job_id
            and a.attempt = s.attempt
            and a.finished_at = _finished_at
        )
        and (s.job_id, s.attempt) not in (
            select g.job_id, g.attempt
            from unnest(_gone, _gone_attempts) as g (job_id, attempt)
        )
    );
    return case
        when skip_held then jobq_private.settle_rest(job_ids, attempts, results, _left)
        else _left
    end;
end
$$;

revoke all on function jobq_private.settle_successes from public;

comment on function jobq_private.settle_successes is
'Finishes attempts as succeeded and returns the positions of those that did not move.';

-- Purpose: start jobs of these kinds in a queue, with and without lanes, by priority, for
-- claim_calls(); and return their ids.
-- Invariant: SKIP LOCKED; what is locked is updated by its ctid, since nobody else can move it. The
-- caller has entered the queue, and charges it. Raises: nothing.
create or replace function jobq_private.start_calls(
    queue text, kinds text[], wanted integer, is_limited boolean, has_lanes boolean,
    has_gates boolean
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _left integer := wanted;
    _has_lanes boolean := has_lanes;
    _priority integer;
    _found tid[];
    _ids uuid[] := '{}'::uuid[];
begin
    while _left > 0 loop
        _priority := (
            select j.priority
            from jobq_private.job as j
            where j.queue = start_calls.queue
            and j.state in ('queued', 'retrying')
            and j.lane_id is null
            and j.run_at <= _now
            and j.kind = any(start_calls.kinds)
            order by j.priority desc, j.run_at, j.job_id
            limit 1
            for update skip locked
        );
        if _has_lanes then
            _ids := _ids || array(
                select c.job_id
                from jobq_private.claim_lanes(
                    queue, session_user, _left, _priority, is_limited, has_gates, kinds
                ) as c
            );
            _left := wanted - cardinality(_ids);
        end if;
        exit when _priority is null or _left = 0;
        _found := array(
            select j.ctid
            from jobq_private.job as j
            where j.queue = start_calls.queue
            and j.state in ('queued', 'retrying')
            and j.lane_id is null
            and j.priority = _priority
            and j.run_at <= _now
            and j.kind = any(start_calls.kinds)
            order by j.run_at, j.job_id
            limit _left
            for update skip locked
        );
        if has_gates then
            _found := jobq_private.divert_jobs(_found);
            _has_lanes := true;
        end if;
        with taken as (
            update jobq_private.job as j
            set
                state = 'running', worker = session_user,
                place = case when start_calls.is_limited then -1 else 0 end
            where j.ctid = any(_found)
            returning j.job_id
        )
        select _ids || coalesce(array_agg(t.job_id), '{}') into _ids from taken as t;
        _left := wanted - cardinality(_ids);
    end loop;
    return _ids;
end
$$;

revoke all on function jobq_private.start_calls from public;

comment on function jobq_private.start_calls is
'Starts jobs of kinds that are functions, and returns their ids.';

-- Purpose: wake an idle worker of these queues when the caller's transaction commits.
-- Invariant: the producer holds P (shared) before it tests W; an idle worker holds W
-- (shared) before it tests P. So one of the two always sees the other, and NOTIFY, whose
-- lock serialises commits, is sent only when somebody sleeps. docs/wake-ups.md has the
-- proof. W is tried and let go in one expression, between whose parts no cancel comes.
-- Queues share 1024 locks; who has more than 16 queues takes 16 that stand for all of
-- them, so that nobody takes all of the server's. Raises: nothing.
create or replace function jobq_private.wake(queues text[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _producing constant integer := jobq_private.lock_class('producing');
    _waiting constant integer := jobq_private.lock_class('waiting');
    _is_wide constant boolean := cardinality(wake.queues) > 16;
    _queue text;
    _narrow integer;
    _wide integer;
begin
    foreach _queue in array wake.queues loop
        _narrow := hashtext(_queue) & 1023;
        _wide := 1024 + (_narrow & 15);
        perform pg_advisory_xact_lock_shared(
            _producing, case when _is_wide then _wide else _narrow end
        );
        if not (
            pg_try_advisory_lock(_waiting, _narrow)
            and pg_advisory_unlock(_waiting, _narrow)
            and pg_try_advisory_lock(_waiting, _wide)
            and pg_advisory_unlock(_waiting, _wide)
        ) then
            perform jobq_private.notify('jobq', _queue);
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.wake from public;

comment on function jobq_private.wake is
'Notifies sleeping workers of these queues at commit, and nobody when none sleeps.';

-- Purpose: how long to wait before the attempt after this one.
-- Invariant: fixed: d; linear: d·n; exponential: d·2^(n-1); each then ± jitter·delay, and
-- clamped to max_delay. decorrelated: uniform from d to the lesser of max_delay and d·3^n
-- (after "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
-- Raises: 22004, 22023.
-- Argument strategy: fixed, linear, exponential or decorrelated.
-- Argument initial_delay: the delay before the second attempt; up to a year.
-- Argument max_delay: no delay is longer than this; up to a year.
-- Argument jitter: by which share the delay is changed at random, 0 to 1.
-- Argument attempt: the attempt that failed, from 1.
-- Returns: the delay.
-- Example: select jobq.backoff('exponential', '1 s', '1 h', 0.25, 3);
create or replace function jobq.backoff(
    strategy text,
    initial_delay interval,
    max_delay interval,
    jitter double precision,
    attempt integer
)
returns interval
language plpgsql
volatile
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _initial double precision := extract(epoch from initial_delay);
    _max double precision := extract(epoch from max_delay);
    _growth integer := least(attempt, 64);
    _seconds double precision;
begin
    if num_nulls(strategy, initial_delay, max_delay, jitter, attempt) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'every argument of backoff');
    elsif attempt < 1 or not coalesce(jitter between 0 and 1, false)
        or _initial not between 0 and 31536000 or _max not between 0 and 31536000
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'attempt must be at least 1, jitter from 0 to 1, delays from 0 to 365 days');
    end if;
    case strategy
        when 'fixed' then _seconds := _initial;
        when 'linear' then _seconds := _initial * attempt;
        when 'exponential' then _seconds := _initial * 2::double precision ^ (_growth - 1);
        when 'decorrelated' then
            _seconds := least(_max, _initial * 3::double precision ^ _growth);
            _seconds := _initial + random() * greatest(0, _seconds - _initial);
        else
            perform jobq_private.raise_error('INVALID_ARGUMENT',
                'strategy must be fixed, linear, exponential or decorrelated');
    end case;
    _seconds := _seconds * (1 + jitter * (2 * random() - 1));
    return make_interval(secs => least(_seconds, _max));
end
$$;

revoke all on function jobq.backoff from public;
grant execute on function jobq.backoff
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.backoff is
'Returns how long to wait before the attempt after this one.';

-- Purpose: the listening session of an idle worker says that it is about to sleep.
-- Invariant: W (shared, session) is taken before P is tried. True means that every
-- producer that missed W has committed: claim once more, then sleep until notified.
-- False: a producer is in flight; claim, and call again shortly. jobq_private.wake() says
-- which locks stand for a queue. Raises: 22004, 22023.
-- Argument queues: the queues that the worker claims from.
-- Returns: true: claim once more, and when that brings nothing, sleep until notified;
-- false: claim, and call again after some milliseconds.
-- Example: select jobq.begin_wait('{default}');
create or replace function jobq.begin_wait(queues text[])
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _producing constant integer := jobq_private.lock_class('producing');
    _waiting constant integer := jobq_private.lock_class('waiting');
    _is_wide constant boolean := cardinality(begin_wait.queues) > 16;
    _queue text;
    _narrow integer;
    _wide integer;
    _is_quiet boolean := true;
begin
    perform jobq_private.check_claim(begin_wait.queues, 'listener', 0);
    perform pg_advisory_unlock_all();
    foreach _queue in array begin_wait.queues loop
        _narrow := hashtext(_queue) & 1023;
        perform pg_advisory_lock_shared(
            _waiting, case when _is_wide then 1024 + (_narrow & 15) else _narrow end
        );
    end loop;
    foreach _queue in array begin_wait.queues loop
        _narrow := hashtext(_queue) & 1023;
        _wide := 1024 + (_narrow & 15);
        _is_quiet := _is_quiet
            and pg_try_advisory_lock(_producing, _narrow)
            and pg_advisory_unlock(_producing, _narrow)
            and pg_try_advisory_lock(_producing, _wide)
            and pg_advisory_unlock(_producing, _wide);
    end loop;
    return _is_quiet;
end
$$;

revoke all on function jobq.begin_wait from public;
grant execute on function jobq.begin_wait to jobq_worker;

comment on function jobq.begin_wait is
'Marks the listening session as asleep on these queues; true when no enqueue is in flight that could have missed it.';

-- Purpose: lease up to max_jobs runnable jobs to a worker.
-- Invariant: SKIP LOCKED, so no two callers get one job and none waits. Queues in the
-- order given; within a queue by priority, then run_at, then id. Each priority in use is
-- one range of job_ready_idx, from next_mark() to now, so jobs due later cost nothing. What
-- is locked is updated by its ctid, since nobody else can move it. A row that others have
-- claimed since this snapshot would be locked, found to run, and kept from its worker until
-- the commit: so what was touched by a transaction that may still have been open when the
-- claim began, one of the last 1000, is passed over, and taken by a second pass where the
-- first comes back short. A place below one says that the limits have been looked at. What
-- waits for jobs that this transaction has ended is released first; for those that others
-- have ended, when there is room left. Raises: 22004, 22023.
-- Argument max_jobs: at most so many, 0 to 10000.
-- Argument max_limited: of these at most so many that have a concurrency key, or whose queue or
-- kind has limits: a worker that claims ahead takes no places for what it does not yet run. null
-- means any number.
-- Argument except_kinds: kinds that the worker has no handler for: their jobs are left to
-- others; null for none.
-- Returns: rows of jobq.claimed_job, none when nothing can run now.
-- Example: select * from jobq.claim('{default,mail}', 'worker-1', 10);
create or replace function jobq.claim(
    queues text[], worker text, max_jobs integer default 1, max_limited integer default null,
    except_kinds text[] default null
)
returns setof jobq.claimed_job
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _self constant xid := pg_current_xact_id_if_assigned()::xid;
    _open constant integer := least(
        age(pg_snapshot_xmin(pg_current_snapshot())::xid), 1000
    );
    _left integer := claim.max_jobs;
    _limited integer := coalesce(claim.max_limited, claim.max_jobs);
    _queue text;
    _mark jobq_private.claim_mark;
    _from jobq_private.claim_mark;
    _is_second boolean;
    _found tid[];
    _look record;
    _entered integer;
    _spare integer;
    _taken integer;
begin
    perform jobq_private.check_claim(
        claim.queues, claim.worker, claim.max_jobs, claim.except_kinds
    );

    if current_setting('jobq.looks', true) = 'on' then
        perform jobq_private.resolve();
    end if;

    foreach _queue in array case
        when cardinality(claim.queues) <= 16 then claim.queues
        else jobq_private.claimable_queues(claim.queues)
    end loop
        exit when _left = 0;
        select l.* into _look from jobq_private.look_at(_queue, _now) as l;
        continue when _look.is_paused;
        _mark := null;
        _is_second := false;
        _spare := 0;
        if _look.is_limited then
            _spare := _left - jobq_private.enter_queue(
                _queue, least(_left, _limited), clock_timestamp()
            );
            _left := _left - _spare;
            _entered := _left;
        end if;
        while _left > 0 loop
            if not _is_second then
                _mark := jobq_private.next_mark(_queue, _mark);
                if _look.has_lanes and _limited > 0 then
                    return query
                    select c.*
                    from jobq_private.claim_lanes(
                        _queue, claim.worker, least(_left, _limited), _mark.priority,
                        _look.is_limited, _look.has_gates,
                        except_kinds => claim.except_kinds
                    ) as c;
                    get diagnostics _taken = row_count;
                    _left := _left - _taken;
                    _limited := _limited - _taken;
                end if;
                exit when _mark.priority is null or _left = 0;
                _from := _mark;
            end if;
            select
                array_agg(d.ctid), max(d.run_at), (array_agg(d.job_id))[count(*)]
            into _found, _mark.run_at, _mark.job_id
            from (
                select j.ctid, j.run_at, j.job_id
                from jobq_private.job as j
                where j.queue = _queue
                and j.state in ('queued', 'retrying')
                and j.lane_id is null
                and j.priority = _mark.priority
                and (j.run_at, j.job_id) >= (_from.run_at, _from.job_id)
                and j.run_at <= _now
                and (claim.except_kinds is null or j.kind <> all(claim.except_kinds))
                and (_is_second or age(j.xmax) > _open or j.xmax = _self)
                order by j.run_at, j.job_id
                limit _left
                for update skip locked
            ) as d;
            _is_second := not _is_second;
            continue when _found is null;
            if _look.has_gates then
                _found := jobq_private.divert_jobs(_found);
                exit when _found = '{}';
            end if;

            return query
            with taken as (
                update jobq_private.job as j
                set
                    state = 'running', worker = claim.worker,
                    place = case when _look.is_limited then -1 else 0 end
                where j.ctid = any(_found)
                returning
                    j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue,
                    j.max_attempts, j.timeout, j.lease_expires_at, j.run_at::timestamptz, j.created_at,
                    j.idempotency_key, j.lease, j.delivery_version
            )
            select t.* from taken as t
            where t.lease_expires_at is not null
            order by t.run_at, t.job_id;
            _left := _left - cardinality(_found);
        end loop;
        if _mark.took > interval '0.5 ms' or _mark.slow_looks > 0 then
            perform jobq_private.keep_mark(_mark);
        end if;
        if _look.is_limited then
            perform jobq_private.charge_queue(_queue, _entered - _left);
            _left := _left + _spare;
            _limited := least(_limited, _left);
        end if;
    end loop;
    if _left > 0 and exists (
        select from jobq_private.look as l where l.look_at <= clock_timestamp()
    ) and jobq_private.resolve() > 0 then
        return query select * from jobq.claim(
            claim.queues, claim.worker, _left, _limited, claim.except_kinds
        );
    end if;
end
$$;

revoke all on function jobq.claim from public;
grant execute on function jobq.claim to jobq_worker;

comment on function jobq.claim is
'Leases up to max_jobs runnable jobs to a worker: by queue as given, then priority, run_at and id.';

-- Purpose: lease jobs whose kinds are functions of the database to whoever has logged in, for
-- work().
-- Invariant: SKIP LOCKED. Only functions that the log-in may execute, and whose owner it
-- trusts: itself, the database's owner, or a superuser. A role that others belong to as well
-- is not enough: any of them could have made the function. So nobody who can declare a kind
-- has another log-in run code of theirs. What limits bind holds its gate or lane until the commit,
-- so that nobody else starts jobs there meanwhile. Raises: 22004, 22023.
-- Argument max_jobs: at most so many, 0 to 10000.
-- Column run: the schema and the name of the function.
-- Column is_batch: whether it takes the payloads of many jobs at a time.
-- Column retry_on: after which errors a job is tried again; null means the default.
-- Example: select * from jobq.claim_calls('{default}', 10);
create or replace function jobq.claim_calls(queues text[], max_jobs integer default 1)
returns table (
    job_id uuid, attempt integer, kind text, payload jsonb, run text[], is_batch boolean,
    retry_on text[]
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    _kinds text[];
    _batches text[];
    _ids uuid[] := '{}'::uuid[];
    _begun uuid[];
    _queue text;
    _look record;
    _left integer := max_jobs;
begin
    perform jobq_private.check_claim(claim_calls.queues, session_user, claim_calls.max_jobs);
    perform jobq_private.resolve();
    select coalesce(array_agg(k.kind), '{}'), array_agg(k.kind) filter (where f.is_batch)
    into _kinds, _batches
    from jobq_private.kind as k
    cross join lateral jobq_private.sql_function(k.run) as f
    join pg_catalog.pg_roles as o on o.oid = f.owner
    where f.may_execute
    and (
        o.rolsuper
        or o.rolname = session_user
        or f.owner = (
            select d.datdba from pg_catalog.pg_database as d where d.datname = current_database()
        )
    );

    foreach _queue in array claim_calls.queues loop
        exit when _left = 0;
        select l.* into _look from jobq_private.look_at(_queue, clock_timestamp()) as l;
        continue when _look.is_paused;
        _begun := jobq_private.start_calls(
            _queue, _kinds,
            case
                when _look.is_limited
                then jobq_private.enter_queue(_queue, _left, clock_timestamp())
                else _left
            end,
            coalesce(_look.is_limited, false), _look.has_lanes, _look.has_gates
        );
        if _look.is_limited then
            perform jobq_private.charge_queue(_queue, cardinality(_begun));
        end if;
        _left := _left - cardinality(_begun);
        _ids := _ids || _begun;
    end loop;
    return query
    select j.job_id, j.attempt, j.kind, j.payload, parse_ident(k.run),
        coalesce(k.kind = any(_batches), false), k.retry_on
    from jobq_private.job as j
    join jobq_private.kind as k on k.kind = j.kind
    where j.job_id = any(_ids)
    and j.lease_expires_at is not null
    order by
        array_position(claim_calls.queues, j.queue), j.priority desc, j.run_at, j.job_id;
end
$$;

revoke all on function jobq.claim_calls from public;
grant execute on function jobq.claim_calls to jobq_worker;

comment on function jobq.claim_calls is
'Leases jobs whose kinds are functions that whoever has logged in may run.';

-- Purpose: lease one named job to a worker, or nothing when it cannot run now.
-- Invariant: SKIP LOCKED; a job that is not due, or whose queue is paused, is not taken. Waits for
-- whoever starts jobs under limits of this one's at the same time.
-- Raises: 22004, 22023.
-- Returns: a row of jobq.claimed_job, or none.
-- Example: select * from jobq.claim_job(:'waiting', 'worker-1');
create or replace function jobq.claim_job(job_id uuid, worker text)
returns setof jobq.claimed_job
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq_private.job;
    _found record;
begin
    if claim_job.job_id is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_id');
    end if;
    perform jobq_private.check_claim('{}', claim_job.worker, 1);

    select j.* into _job
    from jobq_private.job as j
    where j.job_id = claim_job.job_id
    and j.state in ('queued', 'retrying')
    and j.run_at <= clock_timestamp()
    and not jobq_private.is_paused(j.queue)
    and (select b.reason from jobq_private.barrier(j, clock_timestamp()) as b) is null
    for update skip locked;
    if not found then
        return;
    end if;
    select f.* into _found from jobq_private.find_place(_job) as f;
    if _found.barrier is not null then
        return;
    end if;
    return query
    with taken as (
        update jobq_private.job as j
        set
            state = 'running', worker = claim_job.worker,
            place = coalesce(-_found.place, 0)
        where j.job_id = _job.job_id
        returning
            j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue, j.max_attempts,
            j.timeout, j.lease_expires_at, j.run_at::timestamptz, j.created_at,
            j.idempotency_key, j.lease, j.delivery_version
    )
    select t.* from taken as t where t.lease_expires_at is not null;
    perform jobq_private.charge_job(_job);
end
$$;

revoke all on function jobq.claim_job from public;
grant execute on function jobq.claim_job to jobq_worker;

comment on function jobq.claim_job is
'Leases one named job to a worker, or returns nothing when it cannot run now.';

-- Purpose: finish an attempt as succeeded.
-- Invariant: true once; false when this very attempt has completed the job before, as
-- after a commit whose outcome was unknown; anything else is a lost lease and changes
-- nothing.
-- Raises: 22004, JQ001, JQ003, JQ005, JQ006.
-- Never: INVALID_ARGUMENT.
-- Returns: true; false when this very attempt has completed the job before.
-- Example: select jobq.complete(:'running', 1, '{"message_id": "42"}');
create or replace function jobq.complete(
    job_id uuid, attempt integer, result jsonb default null
)
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _outcome text;
begin
    select c.outcome into _outcome
    from jobq.complete_many(
        array[complete.job_id], array[complete.attempt], jsonb_build_array(complete.result)
    ) as c;
    if _outcome = 'succeeded' then
        return true;
    elsif exists (
        select from jobq.get_job(complete.job_id) as j
        where j.state = 'succeeded' and j.attempt = complete.attempt
    ) then
        return false;
    end if;
    perform jobq_private.refuse_attempt(complete.job_id, complete.attempt);
    return false;
end
$$;

revoke all on function jobq.complete from public;
grant execute on function jobq.complete to jobq_worker;

comment on function jobq.complete is
'Finishes an attempt as succeeded: true once, false when repeated, an error when the lease is lost.';

-- Purpose: finish many attempts as succeeded. results is a JSON array parallel to the ids.
-- Invariant: each attempt counts once; a stale one changes nothing and comes back as
-- 'lost', so that one of them does not hold up the rest. Planned once: a plan made for each call
-- looks at every partition of the archive.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Column outcome: succeeded; repeated where this very attempt had succeeded before, as
-- complete() answers false; or lost where it no longer held the job.
-- Example: select * from jobq.complete_many(array[:'running'::uuid], '{1}', '[{"message_id": "42"}]');
create or replace function jobq.complete_many(
    job_ids uuid[], attempts integer[], results jsonb default null
)
returns table (job_id uuid, attempt integer, outcome text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
as $$
begin
    return query
    select s.job_id, s.attempt, case
        when l.n is null then 'succeeded'
        when exists (
            select from jobq_private.job_archive as a
            where a.job_id = s.job_id and a.attempt = s.attempt and a.state = 'succeeded'
        )
        then 'repeated'
        else 'lost'
    end
    from unnest(jobq_private.settle_successes(
        complete_many.job_ids, complete_many.attempts, complete_many.results, false
    )) as l (n)
    right join unnest(complete_many.job_ids, complete_many.attempts)
        with ordinality as s (job_id, attempt, n)
        on s.n = l.n
    order by s.n;
end
$$;

revoke all on function jobq.complete_many from public;
grant execute on function jobq.complete_many to jobq_worker;

comment on function jobq.complete_many is
'Finishes many attempts as succeeded and tells for each whether it still held its job.';

-- Purpose: a worker that saw the request to cancel ends the attempt.
-- Invariant: only where it was asked for, and only by the attempt that holds the lease.
-- Raises: 22004, JQ001, JQ002, JQ003.
-- Example: select jobq.confirm_cancel(:'cancelling', 1);
create or replace function jobq.confirm_cancel(job_id uuid, attempt integer)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _requested_at timestamptz;
begin
    select j.cancel_requested_at into _requested_at
    from jobq_private.job as j
    where j.job_id = confirm_cancel.job_id
    and j.attempt = confirm_cancel.attempt
    and j.lease_expires_at is not null
    for update;
    if not found then
        perform jobq_private.refuse_attempt(confirm_cancel.job_id, confirm_cancel.attempt);
    elsif _requested_at is null then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: nobody has asked to cancel it', confirm_cancel.job_id
        ));
    end if;
    update jobq_private.job as j
    set state = 'cancelled'
    where j.job_id = confirm_cancel.job_id;
end
$$;

revoke all on function jobq.confirm_cancel from public;
grant execute on function jobq.confirm_cancel to jobq_worker;

comment on function jobq.confirm_cancel is
'Ends an attempt as cancelled, where that was asked for.';

-- Purpose: for how long a worker of these queues may sleep: until the next job is due.
-- Invariant: a duration by the database's clock, so that no worker's own clock matters;
-- zero or less when there is work now, null when none waits. What may be released by a look
-- that has been put off counts as due then, for who sees all queues. Raises: 22004.
-- Argument except_kinds: kinds whose jobs do not count; null for none.
-- Returns: how long until the next job is due; zero or less when there is work now,
-- null when none waits.
-- Example: select jobq.due_in('{default}');
create or replace function jobq.due_in(queues text[], except_kinds text[] default null)
returns interval
language plpgsql
volatile
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _due constant timestamptz := jobq.next_due(due_in.queues, due_in.except_kinds);
    _now constant timestamptz := clock_timestamp();
begin
    return least(
        case when isfinite(_due) then _due - _now when _due < _now then interval '0' end,
        (
            select min(greatest(
                case when isfinite(l.look_at) then l.look_at - _now end,
                least(greatest(_now - l.created_at, interval '10 ms'), interval '1 s')
            ))
            from jobq_private.look as l
            where jobq_private.worked_queues() is null
        )
    );
end
$$;

revoke all on function jobq.due_in from public;
grant execute on function jobq.due_in to jobq_worker, jobq_reader;

comment on function jobq.due_in is
'Returns how long it is until the next job of these queues becomes runnable, or null when none waits.';

-- Purpose: the listening session of a worker says that it is awake, or that of a client
-- that it waits for no job.
-- Invariant: drops every advisory lock of its session, so the session must be a
-- listener and nothing else. Raises: nothing.
-- Example: select jobq.end_wait();
create or replace function jobq.end_wait()
returns void
language sql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select pg_advisory_unlock_all()
$$;

revoke all on function jobq.end_wait from public;
grant execute on function jobq.end_wait
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.end_wait is
'Marks the listening session as awake or waiting for no job, so that nobody need notify it.';

-- Purpose: finish a batch and claim the next, in one call and one commit.
-- Invariant: completed and failed attempts are settled before the claim, so that what
-- they free can be claimed. A job that another open transaction has changed or locked holds
-- up none of the others: it comes back as held, and is settled by a later call.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Argument max_jobs: at most so many new jobs, 0 to 10000.
-- Argument max_limited: of these at most so many that have a concurrency key, or whose queue or
-- kind has limits; null means any number.
-- Argument job_ids: the jobs that succeeded.
-- Members failures: fail
-- Argument except_kinds: kinds that the worker has no handler for: their jobs are left to
-- others; null for none.
-- Column outcome: claimed for a job; for each failure the new state (retrying, dead or
-- cancelled); lost for an attempt that no longer held its job; held where another
-- transaction holds it, to be settled again by a later call. Attempts that succeeded have
-- no row.
-- Column attempt: of a claimed job the attempt that begins, else that which was
-- settled.
-- Example: select outcome, job_id, payload from jobq.exchange('{default}', 'worker-1', 10, array[:'running'::uuid], '{1}');
create or replace function jobq.exchange(
    queues text[],
    worker text,
    max_jobs integer,
    job_ids uuid[] default '{}',
    attempts integer[] default '{}',
    results jsonb default null,
    failures jsonb default null,
    max_limited integer default null,
    except_kinds text[] default null
)
returns table (
    outcome text,
    job_id uuid,
    attempt integer,
    kind text,
    payload jsonb,
    metadata jsonb,
    queue text,
    max_attempts integer,
    timeout interval,
    lease_expires_at timestamptz,
    run_at timestamptz,
    created_at timestamptz,
    idempotency_key text,
    lease interval,
    delivery_version integer
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _lost bigint[];
    _held uuid[] := array[]::uuid[];
begin
    if (exchange.job_ids, exchange.attempts) is distinct from ('{}'::uuid[], '{}'::integer[])
    then
        _lost := jobq_private.settle_successes(
            exchange.job_ids, exchange.attempts, exchange.results, true
        );
    end if;
    if _lost is not null then
        return query
        select case when j.job_id is null then 'lost' else 'held' end, l.*
        from unnest(_lost) as n
        left join jobq_private.job as j
            on j.job_id = exchange.job_ids[n]
            and j.attempt = exchange.attempts[n]
            and j.lease_expires_at is not null
        cross join lateral jobq_private.lost_job(
            exchange.job_ids[n], exchange.attempts[n]
        ) as l;
    end if;
    if exchange.failures is not null then
        _held := jobq_private.held_jobs(array(
            select (f.job_id #>> '{}')::uuid
            from jsonb_path_query(exchange.failures, '$[*].job_id') as f (job_id)
        ));
    end if;
    if cardinality(_held) > 0 then
        return query
        select 'held', l.*
        from jsonb_populate_recordset(null::jobq_private.failure, exchange.failures) as f
        cross join lateral jobq_private.lost_job(f.job_id, f.attempt) as l
        where f.job_id = any(_held);
    end if;
    if exchange.failures is not null then
        return query
        select coalesce(f.state, 'lost'), l.*
        from jobq.fail_many(
            case when cardinality(_held) = 0 then exchange.failures else (
                select coalesce(jsonb_agg(f.failure), '[]')
                from jsonb_array_elements(exchange.failures) as f (failure)
                where (f.failure ->> 'job_id')::uuid <> all(_held)
            ) end
        ) as f
        cross join lateral jobq_private.lost_job(f.job_id, f.attempt) as l;
    end if;
    return query
    select 'claimed', c.*
    from jobq.claim(
        exchange.queues, exchange.worker, exchange.max_jobs, exchange.max_limited,
        exchange.except_kinds
    ) as c;
end
$$;

revoke all on function jobq.exchange from public;
grant execute on function jobq.exchange to jobq_worker;

comment on function jobq.exchange is
'Finishes a batch and claims the next, in one call and one commit.';

-- Purpose: end an attempt as failed.
-- Invariant: retrying while attempts are left and the failure is retryable, else dead; a
-- stale attempt changes nothing. Without retry_in the kind's backoff decides. The error
-- is redacted and cut at 512 characters; details, a JSON object, goes beside it in the
-- attempt.
-- Raises: 22004, 22023, JQ001, JQ003.
-- Argument error_code: a word for the kind of error, cut at 128 characters; for filters
-- and metrics.
-- Returns: the new state: retrying, dead or cancelled.
-- Example: select jobq.fail(:'running', 1, 'status 503', 'HTTP_ERROR', retry_in => '30 s');
create or replace function jobq.fail(
    job_id uuid,
    attempt integer,
    error text,
    error_code text default 'ERROR',
    retryable boolean default true,
    retry_in interval default null,
    details jsonb default null
)
returns text
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _state text;
begin
    if fail.retry_in not between '0' and '365 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'retry_in must be from 0 to 365 days'
        );
    elsif jsonb_typeof(fail.details) <> 'object' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'details must be an object');
    end if;
    select s.state into _state
    from jobq_private.settle_failures(array[row(
        fail.job_id, fail.attempt, jobq_private.redacted(fail.error),
        coalesce(fail.error_code, 'ERROR'), fail.retryable, fail.retry_in,
        jobq_private.kept_details(fail.details)
    )::jobq_private.failure], false) as s;
    if not found then
        perform jobq_private.refuse_attempt(fail.job_id, fail.attempt);
    end if;
    return _state;
end
$$;

revoke all on function jobq.fail from public;
grant execute on function jobq.fail to jobq_worker;

comment on function jobq.fail is
'Ends an attempt as failed and returns the new state: retrying, dead or cancelled.';

-- Purpose: end many attempts as failed, given as a JSON array.
-- Invariant: a stale attempt changes nothing. An unknown member is refused, so that no
-- misspelt retryable is passed over.
-- Raises: 22004, 22023.
-- Members failures: fail
-- Column state: the new state: retrying, dead or cancelled; null where the attempt no
-- longer held the job.
-- Example: select * from jobq.fail_many(jsonb_build_array(jsonb_build_object(
--     'job_id', :'running', 'attempt', 1, 'error', 'no such user', 'retryable', false)));
create or replace function jobq.fail_many(failures jsonb)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _known constant text[] := array[
        'job_id', 'attempt', 'error', 'error_code', 'retryable', 'retry_in',
        'details'
    ];
    _failures jobq_private.failure[];
begin
    if fail_many.failures is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'failures');
    elsif jsonb_typeof(fail_many.failures) <> 'array' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'failures must be a JSON array');
    elsif exists (
        select from jsonb_array_elements(fail_many.failures) as e (failure)
        where jsonb_typeof(e.failure) <> 'object' or e.failure - _known <> '{}'
    ) then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'each failure must be an object with members among %s', _known
        ));
    end if;
    select array_agg(row(
        f.job_id, f.attempt, jobq_private.redacted(f.error),
        coalesce(f.error_code, 'ERROR'), f.retryable, f.retry_in,
        case when f.details is not null then jobq_private.kept_details(f.details) end
    )::jobq_private.failure) into _failures
    from jsonb_populate_recordset(null::jobq_private.failure, fail_many.failures) as f;
    if exists (
        select from unnest(_failures) as f
        where f.retry_in not between '0' and '365 days'
        or jsonb_typeof(f.details) <> 'object'
    ) then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'retry_in must be from 0 to 365 days, details an object');
    end if;

    return query
    select f.job_id, f.attempt, s.state
    from unnest(_failures) with ordinality
        as f (job_id, attempt, error, error_code, retryable, retry_in, details, n)
    left join jobq_private.settle_failures(_failures, false) as s
        on s.job_id = f.job_id and s.attempt = f.attempt
    order by f.n;
end
$$;

revoke all on function jobq.fail_many from public;
grant execute on function jobq.fail_many to jobq_worker;

comment on function jobq.fail_many is
'Ends many attempts as failed and tells the new state of each, null where the lease was lost.';

-- Purpose: extend the leases of a worker's jobs, and say that the worker lives.
-- Invariant: rows are found by the primary key alone, whatever the statistics say, and
-- locked in the order of their ids; what another open transaction holds waits for the next
-- heartbeat, and holds up none of the others. A lease is never extended past
-- claimed_at + timeout + lease.
-- Raises: 22004, 22023.
-- Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument queues: the queues that the worker claims from, for explain() and
-- jobq.worker; null leaves them as they are.
-- Argument except_kinds: kinds that the worker has met and has no handler for, for explain()
-- and health(); null leaves them as they are.
-- Argument release: of what the worker runs, 1 to 200 characters, as the console and
-- jobq.worker show it; null leaves it as it is.
-- Returns: a row for each job, in the order given.
-- Column outcome: extended; cancel_requested, which is extended too; held, which is not
-- extended since another transaction holds the job: ask again; or lost.
-- Example: select * from jobq.heartbeat('worker-1', array[:'running'::uuid], '{1}', '{default}');
create or replace function jobq.heartbeat(
    worker text, job_ids uuid[], attempts integer[], queues text[] default null,
    except_kinds text[] default null, release text default null
)
returns table (job_id uuid, attempt integer, outcome text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
    perform jobq_private.check_claim('{}', heartbeat.worker, 0, heartbeat.except_kinds);
    if length(heartbeat.release) not between 1 and 200 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'release must have 1 to 200 characters'
        );
    end if;
    perform jobq_private.check_results(heartbeat.job_ids, heartbeat.attempts, null);

    insert into jobq_private.worker as w (worker, queues, except_kinds, release)
    values (
        heartbeat.worker, coalesce(heartbeat.queues, '{}'),
        coalesce(heartbeat.except_kinds, '{}'), heartbeat.release
    )
    on conflict on constraint worker_pkey do update
    set
        seen_at = now(), queues = coalesce(heartbeat.queues, w.queues),
        except_kinds = coalesce(heartbeat.except_kinds, w.except_kinds),
        release = coalesce(heartbeat.release, w.release);

    return query
    with held as materialized (
        select j.job_id
        from unnest(heartbeat.job_ids, heartbeat.attempts) as f (job_id, attempt)
        join jobq_private.job as j
            on j.job_id = any(heartbeat.job_ids)
            and j.job_id = f.job_id
            and j.attempt = f.attempt
            and j.lease_expires_at is not null
        order by j.job_id
        for update of j skip locked
    ),
    extended as (
        update jobq_private.job as j
        set heartbeat_at = clock_timestamp()
        from held as h
        where j.job_id = any(heartbeat.job_ids)
        and j.job_id = h.job_id
        returning j.job_id, j.attempt, j.cancel_requested_at
    )
    select f.job_id, f.attempt, case
        when e.job_id is null and exists (
            select from jobq_private.job as j
            where j.job_id = f.job_id
            and j.attempt = f.attempt
            and j.lease_expires_at is not null
        ) then 'held'
        when e.job_id is null then 'lost'
        when e.cancel_requested_at is not null then 'cancel_requested'
        else 'extended'
    end
    from unnest(heartbeat.job_ids, heartbeat.attempts)
        with ordinality as f (job_id, attempt, n)
    left join extended as e on e.job_id = f.job_id and e.attempt = f.attempt
    order by f.n;
end
$$;

revoke all on function jobq.heartbeat from public;
grant execute on function jobq.heartbeat to jobq_worker;

comment on function jobq.heartbeat is
'Extends the leases of a worker''s jobs and tells which are lost and which are to be cancelled.';

-- Purpose: a worker has been told to wait: start no job of its job's concurrency key for so long,
-- or where it has no key of its kind in its queue.
-- Invariant: what runs goes on, this job too: settle it. Raises: 22004, 22023, JQ001, JQ003.
-- Argument hold_for: for how long, 0 to 365 days.
-- Argument reason: why, for explain(); 512 characters at most are kept.
-- Returns: nothing.
-- Example: select jobq.hold_lane(:'running', 1, '30 s', 'status 429');
create or replace function jobq.hold_lane(
    job_id uuid, attempt integer, hold_for interval, reason text default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _until constant timestamptz := clock_timestamp() + hold_for;
    _job record;
begin
    if num_nulls(hold_lane.job_id, hold_lane.attempt, hold_lane.hold_for) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_id, attempt and hold_for');
    elsif hold_lane.hold_for not between '0' and '365 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'hold_for must be from 0 to 365 days'
        );
    end if;
    select j.queue, j.kind, j.concurrency_key, j.lane_id into _job
    from jobq_private.job as j
    where j.job_id = hold_lane.job_id
    and j.attempt = hold_lane.attempt
    and j.lease_expires_at is not null;
    if not found then
        perform jobq_private.refuse_attempt(hold_lane.job_id, hold_lane.attempt);
    end if;
    if _job.concurrency_key is not null then
        perform jobq_private.store_hold(
            _job.lane_id, _job.queue, null, _until, hold_lane.reason, _job.concurrency_key
        );
    else
        perform jobq_private.store_hold(
            jobq_private.kind_lane_id(_job.queue, _job.kind), _job.queue, _job.kind,
            _until, hold_lane.reason
        );
    end if;
end
$$;

revoke all on function jobq.hold_lane from public;
grant execute on function jobq.hold_lane to jobq_worker;

comment on function jobq.hold_lane is
'Starts no job of a running job''s concurrency key, or else of its kind in its queue, for so long.';

-- Purpose: who works, on what, and how many jobs they hold.
-- Invariant: a worker is live when it was seen within the last minute.
-- Column jobs: how many jobs it runs.
-- Column queues: what it claims from.
-- Column except_kinds: the kinds that it has met and has no handler for.
-- Column release: of what it runs, as it says itself; null where it says nothing.
-- Column started_at: when it was first heard of.
create or replace view jobq.worker as
select
    w.worker, w.queues, w.started_at, w.seen_at,
    w.seen_at > now() - interval '1 min' as is_live,
    (
        select count(*) from jobq_private.job as j
        where j.state = 'running' and j.worker = w.worker
    ) as jobs,
    w.region, w.except_kinds, w.release
from jobq_private.worker as w;

revoke all on jobq.worker from public;
grant select on jobq.worker to jobq_reader;

comment on view jobq.worker is 'Workers, when they were last seen, and how many jobs they hold.';

-- Purpose: who works, on what, and how many jobs they hold; the rows of jobq.worker.
-- Invariant: reads only. Raises: nothing.
-- Returns: rows of jobq.worker, by name.
-- Example: select worker, jobs from jobq.list_workers() where is_live;
create or replace function jobq.list_workers()
returns setof jobq.worker
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select w.* from jobq.worker as w order by w.worker
$$;

revoke all on function jobq.list_workers from public;
grant execute on function jobq.list_workers to jobq_operator, jobq_reader;

comment on function jobq.list_workers is
'Lists workers, when they were last seen, and how many jobs they hold.';

-- Purpose: add a line to a job's log.
-- Invariant: append-only; a line is cut at 8192 characters, and has no
-- passwords and the like. It needs no lease, so that an
-- attempt that lost its job can still say so. Raises: 22004, 22023, JQ001.
-- Argument message: the text, cut at 8192 characters.
-- Example: select jobq.log(:'running', 1, 'INFO', 'half of it is done');
create or replace function jobq.log(
    job_id uuid, attempt integer, level text, message text
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(log.job_id, log.attempt, log.level, log.message) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'every argument of log');
    elsif log.level not in ('DEBUG', 'INFO', 'WARN', 'ERROR') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'level must be DEBUG, INFO, WARN or ERROR'
        );
    end if;
    if log.attempt not between 0 and (jobq.get_job(log.job_id)).attempt then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'attempt must be one that the job has had'
        );
    end if;
    insert into jobq_private.job_log (job_id, attempt, level, message)
    values (log.job_id, log.attempt, log.level,
        jobq_private.redacted_text(left(log.message, 8192)));
end
$$;

revoke all on function jobq.log from public;
grant execute on function jobq.log to jobq_worker;

comment on function jobq.log is
'Adds a line to a job''s log.';

-- Purpose: give a leased job back since whom it calls has asked to wait, and have all jobs of its
-- concurrency key wait with it; without a key, those of its kind in its queue.
-- Invariant: the attempt is not counted, and the job goes first when the wait is over. A stale
-- attempt changes nothing. Raises: 22004, 22023, JQ001, JQ003.
-- Argument retry_in: for how long, 0 to 365 days.
-- Argument reason: why, for explain(); 512 characters at most are kept.
-- Returns: the new state: queued, or cancelled where that was asked for.
-- Example: select jobq.rate_limited(:'running', 1, '30 s', 'status 429');
create or replace function jobq.rate_limited(
    job_id uuid, attempt integer, retry_in interval, reason text default null
)
returns text
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if rate_limited.retry_in is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'retry_in');
    elsif rate_limited.retry_in not between '0' and '365 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'retry_in must be from 0 to 365 days'
        );
    end if;
    perform jobq.hold_lane(
        rate_limited.job_id, rate_limited.attempt, rate_limited.retry_in,
        rate_limited.reason
    );
    return jobq.release(rate_limited.job_id, rate_limited.attempt);
end
$$;

revoke all on function jobq.rate_limited from public;
grant execute on function jobq.rate_limited to jobq_worker;

comment on function jobq.rate_limited is
'Gives a leased job back, its attempt not counted, and has all jobs of its concurrency key wait for so long.';

-- Purpose: take back jobs whose lease has expired.
-- Invariant: bounded, oldest lease first, SKIP LOCKED, so any number of callers may run
-- it. The attempt counts; after max_expiries expiries a job is dead, whatever attempts it
-- has left, so that a job which kills its workers stops. Lanes that stayed closed for want of
-- word are opened. Raises: 22004, 22023.
-- Argument max_jobs: at most so many, 1 to 100000.
-- Column state: the new state: retrying, dead or cancelled.
-- Example: select * from jobq.recover();
create or replace function jobq.recover(max_jobs integer default 1000)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    _now constant timestamptz := clock_timestamp();
    _expired jobq_private.failure[];
    _queues text[];
begin
    if recover.max_jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs');
    elsif recover.max_jobs not between 1 and 100000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_jobs must be from 1 to 100000'
        );
    end if;

    select
        array_agg(row(
            e.job_id, e.attempt, 'the lease of worker ' || e.worker || ' expired',
            'LEASE_EXPIRED', true, null, null
        )::jobq_private.failure),
        array_agg(distinct e.queue)
    into _expired, _queues
    from (
        select j.job_id, j.attempt, j.worker, j.queue
        from jobq_private.job as j
        where j.state = 'running' and j.lease_expires_at < _now
        order by j.lease_expires_at
        limit recover.max_jobs
        for update skip locked
    ) as e;

    if _expired is not null then
        return query select s.* from jobq_private.settle_failures(_expired, true) as s;
        perform jobq_private.wake(_queues);
    end if;
    perform jobq_private.reopen_lanes();
end
$$;

revoke all on function jobq.recover from public;
grant execute on function jobq.recover to jobq_worker, jobq_operator;

comment on function jobq.recover is
'Takes back jobs whose lease has expired, and tells their new state.';

-- Purpose: give a leased job back unfinished: shutdown, or a snooze until run_at.
-- Invariant: the attempt is not counted; a stale one changes nothing. Waits for a transaction
-- that holds the job.
-- Raises: 22004, 22023, JQ001, JQ003.
-- Argument run_at: not before this instant; null means as soon as possible.
-- Returns: the new state: queued, or cancelled where that was asked for.
-- Example: select jobq.release(:'running', 1, now() + interval '5 min');
create or replace function jobq.release(
    job_id uuid, attempt integer, run_at timestamptz default null
)
returns text
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _state text;
begin
    perform from jobq_private.job as j where j.job_id = release.job_id for update;
    select r.state into _state
    from jobq.release_many(
        array[release.job_id], array[release.attempt], release.run_at
    ) as r;
    if _state is null then
        perform jobq_private.refuse_attempt(release.job_id, release.attempt);
    end if;
    return _state;
end
$$;

revoke all on function jobq.release from public;
grant execute on function jobq.release to jobq_worker;

comment on function jobq.release is
'Gives a leased job back unfinished, its attempt not counted, and returns the new state.';

-- Purpose: give many leased jobs back unfinished: shutdown, recycling.
-- Invariant: the attempt is not counted; a job that was asked to be cancelled becomes
-- cancelled. A stale attempt changes nothing and comes back with state null. A job that
-- another open transaction holds holds up none of the others.
-- Raises: 22004, 22023.
-- Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument run_at: not before this instant; null means as soon as possible.
-- Column state: queued, or cancelled where that was asked for; held where another
-- transaction holds the job, to be released again by a later call; null where the attempt no
-- longer held the job.
-- Example: select * from jobq.release_many(array[:'running'::uuid], '{1}');
create or replace function jobq.release_many(
    job_ids uuid[], attempts integer[], run_at timestamptz default null
)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    _queues text[];
begin
    perform jobq_private.check_results(release_many.job_ids, release_many.attempts, null);
    if release_many.run_at not between '0001-01-02 UTC' and '9999-12-30 UTC' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'run_at must be in the years 1 to 9999'
        );
    end if;

    return query
    with held as materialized (
        select j.job_id
        from unnest(release_many.job_ids, release_many.attempts) as f (job_id, attempt)
        join jobq_private.job as j
            on j.job_id = any(release_many.job_ids)
            and j.job_id = f.job_id
            and j.attempt = f.attempt
            and j.lease_expires_at is not null
        order by j.job_id
        for update of j skip locked
    ),
    released as (
        update jobq_private.job as j
        set
            state = case
                when j.cancel_requested_at is null then 'queued' else 'cancelled'
            end,
            run_at = coalesce(release_many.run_at, j.run_at)
        from held as h
        where j.job_id = any(release_many.job_ids)
        and j.job_id = h.job_id
        returning j.job_id, j.attempt, j.state
    )
    select f.job_id, f.attempt, case
        when r.job_id is null and exists (
            select from jobq_private.job as j
            where j.job_id = f.job_id
            and j.attempt = f.attempt
            and j.lease_expires_at is not null
        ) then 'held'
        else r.state
    end
    from unnest(release_many.job_ids, release_many.attempts)
        with ordinality as f (job_id, attempt, n)
    left join released as r on r.job_id = f.job_id and r.attempt = f.attempt
    order by f.n;

    select array_agg(distinct j.queue) into _queues
    from jobq_private.job as j
    where j.job_id = any(release_many.job_ids) and j.state = 'queued';
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
end
$$;

revoke all on function jobq.release_many from public;
grant execute on function jobq.release_many to jobq_worker;

comment on function jobq.release_many is
'Gives leased jobs back unfinished, their attempts not counted.';

-- Purpose: a worker that stops takes its name off the list.
-- Invariant: leases do not depend on it. Raises: nothing.
-- Example: select jobq.retire_worker('worker-1');
create or replace function jobq.retire_worker(worker text)
returns void
language sql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
    delete from jobq_private.worker as w where w.worker = retire_worker.worker
$$;

revoke all on function jobq.retire_worker from public;
grant execute on function jobq.retire_worker to jobq_worker;

comment on function jobq.retire_worker is
'Takes a worker that stops off the list of workers.';

-- Purpose: run the function of a kind for jobs that claim_calls() has leased, for work().
-- Invariant: with the caller's rights. A subtransaction, so that what fails undoes nothing of other
-- jobs, and so here OTHERS is caught. A batch that fails is run again one by one, so that one
-- job of it cannot hold up the others. A result that a limit may refuse is stored here, where that still
-- undoes the work.
-- Raises: 22023. Never: NULL_ARGUMENT, JOB_NOT_FOUND, LEASE_LOST, PAYLOAD_TOO_LARGE,
-- PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument run: the schema and the name of the function.
-- Argument is_batch: whether it takes the payloads of many jobs at a time.
-- Argument payloads: the jobs' payloads, parallel to job_ids; one where is_batch is false.
-- Argument small: of how many bytes a result is left to the caller to store.
-- Column result: what the function returned for the job.
-- Column is_done: whether the job is completed already.
-- Column error_code: the SQLSTATE of the error; null where there was none.
-- Column error: its message.
-- Example: select * from jobq.run_calls('{pg_catalog,jsonb_strip_nulls}', false, array[:'running'::uuid], '{1}', '{"{}"}', 100);
create or replace function jobq.run_calls(
    run text[], is_batch boolean, job_ids uuid[], attempts integer[], payloads jsonb[],
    small integer
)
returns table (
    job_id uuid, attempt integer, result jsonb, is_done boolean, error_code text, error text
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _results jsonb[];
    _large bigint[];
begin
    if num_nulls(run, is_batch, job_ids, attempts, payloads, small) > 0
        or (cardinality(job_ids), cardinality(attempts)) is distinct from
        (cardinality(payloads), cardinality(payloads))
    then
        raise exception using
            errcode = '22023',
            message = 'an argument has a value that it may not have',
            detail = 'job_ids, attempts and payloads must have one length, and nothing be null',
            hint = 'the detail names the argument and what it may hold',
            constraint = 'INVALID_ARGUMENT';
    end if;
    begin
        if run_calls.is_batch then
            execute format('select %I.%I($1)', run_calls.run[1], run_calls.run[2])
            into _results using run_calls.payloads;
            if cardinality(_results) <> cardinality(run_calls.job_ids) then
                raise exception using
                    errcode = '21000',
                    message = 'the function did not return a result for each job';
            end if;
        else
            execute format('select array[%I.%I($1)]', run_calls.run[1], run_calls.run[2])
            into _results using run_calls.payloads[1];
        end if;
        set constraints all immediate;
        _large := array(
            select r.n
            from unnest(_results) with ordinality as r (result, n)
            where octet_length(r.result::text) > run_calls.small
        );
        perform jobq.complete(
            run_calls.job_ids[l.n], run_calls.attempts[l.n], _results[l.n]
        )
        from unnest(_large) as l (n);
    exception
        when others or query_canceled or assert_failure then
            _results := null;
            error_code := sqlstate;
            error := sqlerrm;
    end;
    return query
    select u.job_id, u.attempt, _results[u.n], u.n = any(_large), error_code, error
    from unnest(run_calls.job_ids, run_calls.attempts)
        with ordinality as u (job_id, attempt, n)
    where error_code is null or error_code = '57014' or cardinality(run_calls.job_ids) = 1;
    if not found then
        return query
        select r.*
        from unnest(run_calls.job_ids, run_calls.attempts, run_calls.payloads)
            as u (job_id, attempt, payload)
        cross join lateral jobq.run_calls(
            run_calls.run, true, array[u.job_id], array[u.attempt], array[u.payload],
            run_calls.small
        ) as r;
    end if;
end
$$;

revoke all on function jobq.run_calls from public;
grant execute on function jobq.run_calls to jobq_worker;

comment on function jobq.run_calls is
'Runs the function of a kind for leased jobs, with the caller''s rights, and says what came of each.';

-- Purpose: a handler says how far it is.
-- Invariant: only the attempt that holds the lease.
-- Raises: 22004, JQ001, JQ003, JQ005, JQ006.
-- Example: select jobq.set_progress(:'running', 1, '{"done": 50, "of": 100}');
create or replace function jobq.set_progress(job_id uuid, attempt integer, progress jsonb)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem constant text[] := jobq_private.value_problem(
        set_progress.progress, octet_length(set_progress.progress::text), 65536, 64
    );
begin
    if _problem is not null then
        perform jobq_private.raise_error(_problem[1], 'progress: ' || _problem[2]);
    end if;
    update jobq_private.job as j
    set progress = set_progress.progress
    where j.job_id = set_progress.job_id
    and j.attempt = set_progress.attempt
    and j.lease_expires_at is not null;
    if not found then
        perform jobq_private.refuse_attempt(set_progress.job_id, set_progress.attempt);
    end if;
end
$$;

revoke all on function jobq.set_progress from public;
grant execute on function jobq.set_progress to jobq_worker;

comment on function jobq.set_progress is
'Stores how far the running attempt is.';

-- Purpose: run jobs whose kinds are functions of the database, with no worker but the caller.
-- Invariant: with the caller's rights, in the caller's transaction: a job's work and its
-- completion are committed together or not at all. Each job, or batch of a function that takes
-- batches, is a subtransaction: run_calls(). When statement_timeout or a cancel stops one, its
-- jobs fail, and what was leased after it is given back. The kind says after which errors a job
-- is tried again; others are final.
-- Results that no limit can refuse are stored by one statement in the end.
-- Raises: 22004, 22023, JQ001, JQ003. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument max_jobs: at most so many, 0 to 10000.
-- Column state: succeeded, retrying, dead, cancelled, or queued where a job was given back.
-- Example: select * from jobq.work('{default}', 10);
create or replace function jobq.work(
    queues text[] default '{default}', max_jobs integer default 100
)
returns table (job_id uuid, kind text, state text)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _call record;
    _job record;
    _small constant integer := least(
        308, 2 * (jobq.settings() ->> 'max_payload_depth')::integer
    );
    _is_stopped boolean := false;
    _done uuid[] := array[]::uuid[];
    _attempts integer[] := array[]::integer[];
    _results jsonb[] := array[]::jsonb[];
begin
    for _call in
        select
            c.kind, c.run, c.is_batch, coalesce(c.retry_on, '{08,40,53,55,57}') as retry_on,
            array_agg(c.job_id order by c.n) as job_ids,
            array_agg(c.attempt order by c.n) as attempts,
            array_agg(c.payload order by c.n) as payloads
        from jobq.claim_calls(work.queues, work.max_jobs) with ordinality
            as c (job_id, attempt, kind, payload, run, is_batch, retry_on, n)
        group by c.kind, c.run, c.is_batch, c.retry_on, case when not c.is_batch then c.n end
        order by min(c.n)
    loop
        kind := _call.kind;
        if _is_stopped then
            return query
            select r.job_id, _call.kind, r.state
            from jobq.release_many(_call.job_ids, _call.attempts) as r;
            continue;
        end if;
        for _job in
            select r.*
            from jobq.run_calls(
                _call.run, _call.is_batch, _call.job_ids, _call.attempts, _call.payloads,
                _small
            ) as r
        loop
            job_id := _job.job_id;
            state := 'succeeded';
            if _job.error_code is not null then
                _is_stopped := _is_stopped or _job.error_code = '57014';
                state := jobq.fail(
                    _job.job_id, _job.attempt, _job.error, _job.error_code,
                    left(_job.error_code, 2) = any(_call.retry_on)
                    or _job.error_code = any(_call.retry_on)
                );
            elsif not _job.is_done then
                _done := array_append(_done, _job.job_id);
                _attempts := array_append(_attempts, _job.attempt);
                _results := array_append(_results, _job.result);
            end if;
            return next;
        end loop;
    end loop;
    perform jobq.complete_many(_done, _attempts, to_jsonb(_results));
end
$$;

revoke all on function jobq.work from public;
grant execute on function jobq.work to jobq_worker;

comment on function jobq.work is
'Runs jobs whose kinds are functions of the database, with the caller''s rights, and says how each ended.';

reset role;

-- Deploy jobq:health to pg
-- Made by sql/snapshot.py from sql/health/: edit that.
set local role jobq_owner;

-- Purpose: what a client and the database disagree about: the time, and the release.
-- Invariant: reads only; what is null is not compared. release has for each function's
-- name the MD5 sums that its body may have; that of own_shard() is the database's own.
-- Raises: nothing.
create or replace function jobq_private.client_health(client_time timestamptz, release jsonb)
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
stable
parallel restricted
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select
        'clock', abs(d.seconds) < 5,
        format('the database is %s s %s the client', round(abs(d.seconds), 1),
            case when d.seconds < 0 then 'behind' else 'ahead of' end),
        'set both clocks by NTP: what is due, and every lease, go by the database''s'
    from (
        select extract(epoch from clock_timestamp() - client_health.client_time) as seconds
    ) as d
    where d.seconds is not null
    union all
    select
        'schema', count(*) filter (where f.is_other) = 0,
        case when count(*) filter (where f.is_other) = 0
            then format('all %s functions are those of this release', count(*))
            else format('%s functions are not those of this release: %s',
                count(*) filter (where f.is_other),
                left(string_agg(f.function, ', ' order by f.function)
                    filter (where f.is_other), 200))
        end,
        'run jobq deploy of the release that workers and clients use'
    from (
        select
            coalesce(p.function, r.function) as function,
            (r.sums ? p.sum) is not true as is_other
        from (
            select format('%s.%s', n.nspname, s.proname) as function, md5(s.prosrc) as sum
            from pg_proc as s
            join pg_namespace as n on n.oid = s.pronamespace
            where n.nspname in ('jobq', 'jobq_http', 'jobq_private')
            and (n.nspname, s.proname) <> ('jobq_private', 'own_shard')
        ) as p
        full join jsonb_each(client_health.release) as r (function, sums)
            on r.function = p.function
    ) as f
    where client_health.release is not null
    having client_health.release is not null
$$;

revoke all on function jobq_private.client_health from public;

comment on function jobq_private.client_health is
'What a client and the database disagree about, each with its remedy.';

-- Purpose: count what waits in queues of which waiting_counts() sees only a part.
-- Invariant: one look at all live jobs, in a twentieth of the time at most. Raises: nothing.
create or replace function jobq_private.count_waiting()
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    _started constant timestamptz := clock_timestamp();
begin
    if exists (
        select from jobq_private.waiting_count as c
        where c.counted_at + 20 * c.took > _started
    ) then
        return;
    end if;
    delete from jobq_private.waiting_count;
    insert into jobq_private.waiting_count (queue, queued, scheduled, retrying, counted_at, took)
    select
        j.queue,
        count(*) filter (where j.state = 'queued' and j.run_at <= _started),
        count(*) filter (where j.state = 'queued' and j.run_at > _started),
        count(*) filter (where j.state = 'retrying'),
        _started, '0'
    from jobq_private.job as j
    where j.state in ('queued', 'retrying')
    group by j.queue
    having count(*) > 100;
    update jobq_private.waiting_count as c set took = clock_timestamp() - _started;
end
$$;

revoke all on function jobq_private.count_waiting from public;

comment on function jobq_private.count_waiting is
'Counts what waits in long queues.';

-- Purpose: about how many members of multixacts the server keeps: all of them share one
-- bounded space, and PostgreSQL tells neither its size nor what is in use.
-- Invariant: reads at most 200 multixacts, evenly spread over those that are kept, none
-- older than the last checkpoint or any database knows. Raises: nothing.
create or replace function jobq_private.multixact_members()
returns bigint
language sql
stable
parallel restricted
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(round(avg(s.members) * max(k.kept)), 0)::bigint
    from (
        select
            c.next_multixact_id::text::bigint as next,
            least(mxid_age(c.oldest_multi_xid), (
                select max(mxid_age(d.datminmxid)) from pg_database as d
            )) - mxid_age(c.next_multixact_id) as kept
        from pg_control_checkpoint() as c
    ) as k
    cross join generate_series(1, least(k.kept, 200)) as n
    cross join lateral (
        select count(*) as members
        from pg_get_multixact_members((
            greatest(1, (k.next - n::bigint * k.kept / least(k.kept, 200) + 4294967296)
                % 4294967296)
        )::text::xid)
    ) as s
$$;

revoke all on function jobq_private.multixact_members from public;

comment on function jobq_private.multixact_members is
'About how many members of multixacts the server keeps.';

-- Purpose: forget idempotency keys past their retention, workers long gone, and gates at which
-- nothing is spent or held.
-- Invariant: a bounded number at a call; the key of a live job stays. Raises: nothing.
create or replace function jobq_private.prune(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _keys bigint;
begin
    delete from jobq_private.worker as w where w.seen_at < now() - interval '10 min';

    delete from jobq_private.gate as g
    where g.ctid = any (array(
        select o.ctid
        from jobq_private.gate as o
        where o.queue is not null
        and o.passed_until < now()
        and o.held_until < now()
        and not exists (select from jobq_private.job as j where j.job_id = o.head_job_id)
        limit prune.max_rows
        for update skip locked
    ));

    delete from jobq_private.throttle as t
    where t.ctid = any (array(
        select o.ctid from jobq_private.throttle as o
        where o.until < now()
        limit prune.max_rows
        for update skip locked
    ));

    with old as materialized (
        select k.kind, k.idempotency_key
        from jobq_private.idempotency_key as k
        where k.created_at < now() - (select g.key_retention from jobq_private.setting as g)
        and not exists (select from jobq_private.job as j where j.job_id = k.job_id)
        order by k.created_at
        limit prune.max_rows
        for update skip locked
    )
    delete from jobq_private.idempotency_key as k
    using old as o
    where k.kind = o.kind and k.idempotency_key = o.idempotency_key;
    get diagnostics _keys = row_count;
    return _keys;
end
$$;

revoke all on function jobq_private.prune from public;

comment on function jobq_private.prune is
'Forgets idempotency keys past their retention, workers long gone, and gates that say nothing.';

-- Purpose: kinds with a job that is due, which no live worker of its queue has a handler for.
-- Invariant: reads only; looks at kinds that a worker has met, among the first 10,000 jobs of
-- each queue. Raises: nothing.
create or replace view jobq_private.unknown_kind as
select m.kind, m.queue
from (
    select distinct k.kind, q.queue
    from jobq_private.worker as w
    cross join lateral unnest(w.except_kinds) as k (kind)
    cross join lateral unnest(w.queues) as q (queue)
    where w.seen_at > now() - interval '1 min'
) as m
where jobq_private.is_unknown(m.kind, m.queue)
and exists (
    select
    from (
        select j.kind
        from jobq_private.job as j
        where j.queue = m.queue and j.state in ('queued', 'retrying') and j.run_at <= now()
        order by j.priority desc, j.run_at
        limit 10000
    ) as f
    where f.kind = m.kind
);

revoke all on table jobq_private.unknown_kind from public;

comment on view jobq_private.unknown_kind is
'Kinds with a job that is due, which no live worker of its queue has a handler for.';

-- Purpose: the queues in which jobs wait, found by steps from each to the next.
-- Invariant: a descent of an index for each queue, however many jobs wait: one index has
-- the jobs in lanes, another those that are in none. Raises: nothing.
create or replace view jobq_private.waiting_queue as
with recursive ready as (
    (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying') and j.lane_id is null
        order by j.queue
        limit 1
    )
    union all
    select (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying') and j.lane_id is null
        and j.queue > r.queue
        order by j.queue
        limit 1
    )
    from ready as r
    where r.queue is not null
),
laned as (
    (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying') and j.lane_id is not null
        order by j.queue
        limit 1
    )
    union all
    select (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying') and j.lane_id is not null
        and j.queue > l.queue
        order by j.queue
        limit 1
    )
    from laned as l
    where l.queue is not null
)
select r.queue from ready as r where r.queue is not null
union
select l.queue from laned as l where l.queue is not null;

revoke all on table jobq_private.waiting_queue from public;

comment on view jobq_private.waiting_queue is
'Queues in which jobs wait.';

-- Purpose: queues whose jobs have been due for a minute while no live worker serves them.
-- Invariant: reads only; a probe of job_ready_idx for each queue and priority in use.
-- Raises: nothing.
create or replace view jobq_private.unserved_queue as
select u.queue
from jobq_private.waiting_queue as u
where not exists (
    select from jobq_private.worker as w
    where u.queue = any(w.queues) and w.seen_at > now() - interval '1 min'
)
and jobq.next_due(array[u.queue]) < now() - interval '1 min';

revoke all on table jobq_private.unserved_queue from public;

comment on view jobq_private.unserved_queue is
'Queues whose jobs have been due for a minute while no live worker serves them.';

-- Purpose: what in the queue's own tables threatens the promise.
-- Invariant: reads only; each part is one index probe or a statistic. Raises: nothing.
create or replace function jobq_private.queue_health()
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
stable
parallel restricted
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select
        'leases', count(*) = 0,
        format('%s leases expired more than 10 s ago', count(*)),
        'run a worker, or have maintain() called every few seconds'
    from jobq_private.job as j
    where j.state = 'running' and j.lease_expires_at < now() - interval '10 s'
    union all
    select
        'workers', count(*) filter (where w.seen_at > now() - interval '1 min') > 0,
        format('%s workers were seen in the last minute',
            count(*) filter (where w.seen_at > now() - interval '1 min')),
        'start a worker'
    from jobq_private.worker as w
    union all
    select
        'queues', count(*) = 0,
        coalesce(
            left('no live worker serves ' || string_agg(u.queue, ', ' order by u.queue), 500),
            'every queue with due jobs has a live worker'
        ),
        'start a worker with these queues, or call work() where their kinds are functions'
    from jobq_private.unserved_queue as u
    union all
    select
        'kinds', count(*) = 0,
        coalesce(
            left('no live worker knows ' || string_agg(
                format('%s in queue %s', u.kind, u.queue), ', ' order by u.kind, u.queue
            ), 500),
            'every kind that workers have met has one that knows it'
        ),
        'start a worker that has handlers for these kinds'
    from jobq_private.unknown_kind as u
    union all
    select
        'maintenance', count(*) = 0,
        coalesce(
            left(string_agg(format(
                '%s failed %s times, last at %s: %s %s',
                f.task, f.failures, f.failed_at, f.sqlstate, f.error
            ), '; ' order by f.task), 500),
            'no task has failed'
        ),
        'mend what the error names; maintain() tries again at each call'
    from jobq_private.failed_task as f
    union all
    select
        'dead_tuples', d.dead < 50000 or d.dead < d.live,
        format('%s dead and %s live rows in the table of live jobs', d.dead, d.live),
        'end what holds back vacuum (see snapshot), then vacuum jobq_private.job'
    from (
        select
            pg_stat_get_dead_tuples('jobq_private.job'::regclass) as dead,
            pg_stat_get_live_tuples('jobq_private.job'::regclass) as live
    ) as d
    union all
    select
        'triggers', count(*) = 0,
        case when count(*) = 0 then 'none is disabled'
            else 'disabled: ' || left(string_agg(
                format('%s of %s', t.tgname, t.tgrelid::regclass), ', ' order by t.tgname
            ), 200)
        end,
        'alter table … enable trigger all: without them illegal changes are stored'
    from pg_trigger as t
    join pg_class as c on c.oid = t.tgrelid
    where c.relnamespace in ('jobq'::regnamespace, 'jobq_private'::regnamespace)
    and t.tgenabled not in ('O', 'A')
    union all
    select
        'partitions', to_regclass('jobq_private.job_archive_' || t.tomorrow) is not null,
        format('the archive of tomorrow, %s, %s', t.tomorrow, case
            when to_regclass('jobq_private.job_archive_' || t.tomorrow) is null
            then 'is missing' else 'is ready' end),
        'have maintain() called; until then finished jobs go to the default partition'
    from (
        select to_char((now() + interval '1 day') at time zone 'UTC', 'YYYYMMDD') as tomorrow
    ) as t
$$;

revoke all on function jobq_private.queue_health from public;

comment on function jobq_private.queue_health is
'What in the queue threatens the promise, each with its remedy.';

-- Purpose: bring the queue's own history up to the last full minute, forget what is old, and
-- count what waits in long queues.
-- Invariant: at most ten minutes a call, and each once: the row of the mark is locked. A
-- minute is counted ten seconds after it has ended, so that calls under way are in it.
-- Where grants by queue are enforced, a log-in that holds all queues does it.
-- Raises: nothing.
create or replace function jobq_private.roll_up()
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _since timestamptz;
    _until constant timestamptz := date_trunc('minute', clock_timestamp() - interval '10 s');
    _to timestamptz;
    _rows bigint;
begin
    if row_security_active('jobq_private.job') and not coalesce(
        (select h.any_of && '{*}' from jobq_private.held_queue as h), false
    ) then
        return 0;
    end if;
    select greatest(m.rolled_to, _until - interval '3 h') into _since
    from jobq_private.history_mark as m
    where m.rolled_to < _until
    for update skip locked;
    if not found then
        return 0;
    end if;

    _to := least(_until, _since + interval '10 min');
    _rows := jobq_private.roll_up_minutes(_since, _to);
    perform jobq_private.widen_history(1, 10, _since, _to);
    perform jobq_private.widen_history(10, 60, _since, _to);
    delete from jobq_private.history as h
    using (values (1, interval '3 h'), (10, '50 h'), (60, '32 days')) as k (minutes, kept)
    where h.minutes = k.minutes and h.bucket < _until - k.kept;
    delete from jobq_private.latency as l
    using (values (1, interval '3 h'), (10, '50 h'), (60, '32 days')) as k (minutes, kept)
    where l.minutes = k.minutes and l.bucket < _until - k.kept;
    perform jobq_private.count_waiting();
    update jobq_private.history_mark as m set rolled_to = _to;
    return _rows;
end
$$;

revoke all on function jobq_private.roll_up from public;

comment on function jobq_private.roll_up is
'Brings the queue''s own history up to the last full minute, and forgets what is old.';

-- Purpose: count what happened from one minute to another, by minute, queue and kind.
-- Invariant: reads what ended by its time, what was made by its id, and nothing twice; of
-- each minute at most 20 pairs of queue and kind, the rest as (other). Raises: nothing.
create or replace function jobq_private.roll_up_minutes(
    since timestamptz, until timestamptz
)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
    -- Bounds of the minutes, as times and as ids, and of the classes of latency, in seconds.
    _times constant timestamptz[] := array(
        select t from generate_series(since, until, interval '1 min') as t
    );
    _ids constant uuid[] := array(
        select jobq_private.id_floor(t) from unnest(_times) as t
    );
    _classes constant double precision[] := array(
        select (power(2, k / 2.0) - 1) / 1000 from generate_series(1, 49) as k
    );
    _last constant integer := cardinality(_times);
    _rows bigint;
begin
    with ended as materialized (
        select
            width_bucket(a.finished_at, _times) as n, a.queue, a.kind, a.state,
            width_bucket(date_part('epoch', a.finished_at - case a.attempt
                when 1 then greatest(a.run_at, a.created_at) else a.created_at
            end), _classes) as class,
            width_bucket(a.job_id, _ids) as made,
            count(*) as jobs
        from jobq_private.job_archive as a
        where a.finished_at >= since and a.finished_at < until
        group by 1, 2, 3, 4, 5, 6
    ),
    counted as (
        select e.n, e.queue, e.kind, 0::bigint as enqueued,
            sum(e.jobs) filter (where e.state = 'succeeded') as succeeded,
            0::bigint as failed,
            sum(e.jobs) filter (where e.state = 'dead') as dead,
            sum(e.jobs) filter (where e.state = 'cancelled') as cancelled
        from ended as e
        group by 1, 2, 3
        union all
        select e.made, e.queue, e.kind, sum(e.jobs), 0, 0, 0, 0
        from ended as e
        where e.made between 1 and _last - 1
        group by 1, 2, 3
        union all
        select m.n, m.queue, m.kind, m.jobs, 0, 0, 0, 0
        from (
            select width_bucket(j.job_id, _ids) as n, j.queue, j.kind, count(*) as jobs
            from jobq_private.job as j
            where j.job_id >= _ids[1] and j.job_id < _ids[_last]
            group by 1, 2, 3
            union all
            select width_bucket(a.job_id, _ids), a.queue, a.kind, count(*)
            from jobq_private.job_archive as a
            where a.job_id >= _ids[1] and a.job_id < _ids[_last] and a.finished_at >= until
            group by 1, 2, 3
        ) as m
        union all
        select f.n, f.queue, f.kind, 0, 0, count(*), 0, 0
        from (
            select width_bucket(t.finished_at, _times) as n,
                coalesce(j.queue, a.queue) as queue, coalesce(j.kind, a.kind) as kind
            from jobq_private.attempt as t
            left join jobq_private.job as j on j.job_id = t.job_id
            left join lateral (
                select h.queue, h.kind
                from jobq_private.job_archive as h
                where j.job_id is null and h.job_id = t.job_id
                and h.finished_at >= t.finished_at
                limit 1
            ) as a on true
            where t.finished_at >= since and t.finished_at < until
            and t.state = 'retrying'
        ) as f
        where f.queue is not null
        group by 1, 2, 3
    ),
    ranked as (
        select c.n, c.queue, c.kind,
            sum(c.enqueued) as enqueued, sum(c.succeeded) as succeeded,
            sum(c.failed) as failed, sum(c.dead) as dead, sum(c.cancelled) as cancelled,
            row_number() over (
                partition by c.n
                order by sum(c.enqueued) + coalesce(sum(c.succeeded), 0) desc, c.queue, c.kind
            ) as place
        from counted as c
        group by c.n, c.queue, c.kind
    ),
    stored as (
        insert into jobq_private.history (
            minutes, bucket, queue, kind, enqueued, succeeded, failed, dead, cancelled
        )
        select 1, _times[r.n], p.queue, p.kind,
            sum(r.enqueued), coalesce(sum(r.succeeded), 0), sum(r.failed),
            coalesce(sum(r.dead), 0), coalesce(sum(r.cancelled), 0)
        from ranked as r
        cross join lateral (
            select case when r.place <= 20 then r.queue else '(other)' end as queue,
                case when r.place <= 20 then r.kind else '(other)' end as kind
        ) as p
        group by r.n, p.queue, p.kind
        on conflict on constraint history_pkey do nothing
        returning 1
    ),
    classes as (
        select e.n, e.class, sum(e.jobs) as jobs
        from ended as e
        where e.state = 'succeeded'
        group by e.n, e.class
    ),
    timed as (
        insert into jobq_private.latency (minutes, bucket, counts)
        select 1, _times[m.n], array_agg(coalesce(c.jobs, 0) order by k)
        from (select distinct c.n from classes as c) as m
        cross join generate_series(0, 49) as k
        left join classes as c on c.n = m.n and c.class = k
        group by m.n
        on conflict on constraint latency_pkey do nothing
    )
    select count(*) into _rows from stored;
    return _rows;
end
$$;

revoke all on function jobq_private.roll_up_minutes from public;

comment on function jobq_private.roll_up_minutes is
'Counts what happened from one minute to another, by minute, queue and kind.';

-- Purpose: what in the server's configuration and state threatens the promise.
-- Invariant: reads only. The pid of a snapshot's holder is seen by members of
-- pg_read_all_stats; others see its age. Raises: nothing.
create or replace function jobq_private.server_health()
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
stable
parallel restricted
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select
        s.name, s.setting = 'on' or s.setting like 'remote%' or s.setting = 'local',
        format('%s = %s', s.name, s.setting),
        format('set %s = on: a crash may lose what was acknowledged, or bloat grows', s.name)
    from pg_settings as s
    where s.name in ('fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum')
    union all
    select
        'snapshot', coalesce(bool_and(h.is_young), true),
        coalesce(
            min(format('%s holds back vacuum by %s transactions%s', h.holder, h.age, h.since))
                filter (where h.nth = 1),
            'nobody holds back vacuum'
        ),
        'end the session, drop the replication slot, or finish the prepared transaction'
    from (
        select
            g.holder, age(g.xmin) as age,
            ', for ' || date_trunc('second', now() - g.began_at) as since,
            age(g.xmin) < 1000000
            and coalesce(now() - g.began_at < interval '10 min', true) as is_young,
            row_number() over (order by age(g.xmin) desc, g.began_at) as nth
        from (
            select
                format('pid %s', a.pid) as holder, a.backend_xmin as xmin,
                a.xact_start as began_at
            from pg_stat_activity as a
            where a.backend_xmin is not null and a.pid <> pg_backend_pid()
            union all
            select format('slot %s', r.slot_name), r.xmin, null
            from pg_replication_slots as r
            where r.xmin is not null
            union all
            select format('prepared %s', p.gid), p.transaction, p.prepared
            from pg_prepared_xacts as p
        ) as g
    ) as h
    union all
    select
        'multixact', mxid_age(d.datminmxid) < 400000000,
        format('the oldest multixact is %s old', mxid_age(d.datminmxid)),
        'let autovacuum finish, or vacuum (freeze) the tables that it has not reached'
    from pg_database as d
    where d.datname = current_database()
    union all
    select
        'multixact_members', m.members < 1000000000,
        format('about %s members of multixacts are kept', m.members),
        'vacuum (freeze) what many sessions lock at once, before 4 billion stop all writing'
    from jobq_private.multixact_members() as m (members)
    union all
    select
        'notifications', pg_notification_queue_usage() < 0.25,
        format('the slowest listener lags by %s %% of the queue',
            round(100 * pg_notification_queue_usage()::numeric)),
        'end the session that listens and stays idle in a transaction'
    union all
    select
        'failover', r.standbys = 0 or s.setting <> '' or pg_is_in_recovery(),
        case
            when r.standbys = 0 then 'no standby follows'
            when s.setting <> '' then 'commits wait for ' || left(s.setting, 200)
            else format('%s follow, and no commit waits for them', r.standbys)
        end,
        'set synchronous_standby_names (with Patroni synchronous_mode): a failover loses what was'
        ' acknowledged and has not reached the standby'
    from pg_settings as s
    cross join (
        select count(*) as standbys
        from pg_stat_replication as w
        where w.state is distinct from 'backup'
        and not exists (
            select from pg_replication_slots as l
            where l.active_pid = w.pid and l.slot_type = 'logical'
        )
    ) as r
    where s.name = 'synchronous_standby_names'
$$;

revoke all on function jobq_private.server_health from public;

comment on function jobq_private.server_health is
'What in the server threatens the promise, each with its remedy.';

-- Purpose: what is set for a role or for the database, and threatens the promise.
-- Invariant: reads only. Looks where the settings are kept, for another role's session
-- does not show them; of roles, at those that may act as one of jobq's. Raises: nothing.
create or replace function jobq_private.setting_health()
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
stable
parallel restricted
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select
        'role_settings', count(*) = 0,
        coalesce(
            left(string_agg(format('%s for %s', w.setting, w.holder), ', ' order by w.nth), 500),
            'none voids the promise'
        ),
        left(
            string_agg(format('alter %s reset %s', w.holder, w.name), '; ' order by w.nth), 500
        )
    from (
        select
            s.setting, split_part(s.setting, '=', 1) as name,
            case
                when c.setrole = 0 and c.setdatabase <> 0
                then format('database %I', d.datname)
                else concat_ws(
                    ' in database ', 'role ' || coalesce(quote_ident(r.rolname), 'all'),
                    quote_ident(d.datname)
                )
            end as holder,
            row_number() over (order by s.setting, r.rolname, d.datname) as nth
        from pg_db_role_setting as c
        cross join unnest(c.setconfig) as s (setting)
        left join pg_database as d on d.oid = c.setdatabase
        left join pg_roles as r on r.oid = c.setrole
        where s.setting ~*
        '^(synchronous_commit=(off|false|no|0)|session_replication_role=replica)$'
        and (c.setdatabase = 0 or d.datname = current_database())
        and (
            c.setrole = 0
            or exists (
                select from pg_roles as g
                where g.rolname in (
                    'jobq_owner', 'jobq_producer', 'jobq_worker', 'jobq_operator'
                )
                and pg_has_role(c.setrole, g.oid, 'member')
            )
        )
    ) as w
    union all
    select
        'connect', not (c.relrowsecurity and has_database_privilege(
            'public', current_database(), 'connect'
        )),
        case when has_database_privilege('public', current_database(), 'connect')
            then 'every role of the server may connect to this database'
            else 'only roles that were granted it may connect to this database'
        end,
        format('revoke connect on database %I from public, and grant it to the tenants',
            current_database())
    from pg_class as c
    where c.oid = 'jobq_private.job'::regclass
$$;

revoke all on function jobq_private.setting_health from public;

comment on function jobq_private.setting_health is
'What is set for a role or the database that threatens the promise, with the remedy.';

-- Purpose: one task of maintain(), repeated while it comes back full.
-- Invariant: 1,000 rows at a time; the last time begins within the time given.
-- Raises: JQ004. Never: NULL_ARGUMENT, INVALID_ARGUMENT.
create or replace function jobq_private.upkeep(
    task text, at_most interval, out affected bigint, out has_more boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _until constant timestamptz := clock_timestamp() + at_most;
    _done bigint;
begin
    affected := 0;
    loop
        _done := case task
            when 'recovered' then (select count(*) from jobq.recover(1000))
            when 'resolved' then jobq_private.resolve(1000)
            when 'ticked' then (select count(*) from jobq.tick(1000))
            when 'expired' then jobq_private.expire_jobs(1000)
            when 'pruned_jobs' then jobq_private.prune_jobs(1000)
            when 'pruned_keys' then jobq_private.prune(1000)
            when 'pruned_workflows' then jobq_private.prune_workflows(1000)
            when 'rolled_up' then jobq_private.roll_up()
            when 'made_partitions' then jobq_private.make_partitions()
            when 'dropped_partitions' then jobq_private.drop_partitions()
        end;
        affected := affected + _done;
        has_more := _done >= 1000;
        exit when not has_more or clock_timestamp() > _until;
    end loop;
end
$$;

revoke all on function jobq_private.upkeep from public;

comment on function jobq_private.upkeep is
'Does one task of maintain(), again while it comes back full.';

-- Purpose: how many jobs wait in each queue, at a cost that has an end.
-- Invariant: looks at some 50,000 waiting jobs at most, as many of each queue: 10,000 where
-- there are five queues, 100 where there are 500 or more. Of a queue with more, the counts are
-- what count_waiting() has found last, though never less than was seen now. Raises: nothing.
-- Never: NULL_ARGUMENT.
create or replace function jobq_private.waiting_counts()
returns table (
    queue text, queued bigint, scheduled bigint, retrying bigint, oldest timestamptz,
    is_exact boolean
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    _now constant timestamptz := clock_timestamp();
    _queues constant text[] := array(
        select w.queue from jobq_private.waiting_queue as w order by w.queue
    );
    _ends_at constant integer := greatest(
        100, least(10000, 50000 / greatest(1, cardinality(_queues)))
    );
begin
    return query
    select
        q.queue,
        case when e.is_exact then s.queued else greatest(s.queued, c.queued) end,
        case when e.is_exact then s.scheduled else greatest(s.scheduled, c.scheduled) end,
        case when e.is_exact then s.retrying else greatest(s.retrying, c.retrying) end,
        case when e.is_exact then s.oldest else least(s.oldest, d.due) end,
        e.is_exact
    from unnest(_queues) as q (queue)
    cross join lateral (
        select
            count(*) as seen,
            count(*) filter (where w.state = 'queued' and w.run_at <= _now) as queued,
            count(*) filter (where w.state = 'queued' and w.run_at > _now) as scheduled,
            count(*) filter (where w.state = 'retrying') as retrying,
            min(w.run_at) filter (where w.run_at <= _now) as oldest
        from (
            (
                select j.state, j.run_at from jobq_private.job as j
                where j.queue = q.queue and j.state in ('queued', 'retrying')
                and j.lane_id is null
                limit _ends_at + 1
            )
            union all
            (
                select j.state, j.run_at from jobq_private.job as j
                where j.queue = q.queue and j.state in ('queued', 'retrying')
                and j.lane_id is not null
                limit _ends_at + 1
            )
        ) as w
    ) as s
    cross join lateral (select s.seen <= _ends_at) as e (is_exact)
    left join jobq_private.waiting_count as c on c.queue = q.queue and not e.is_exact
    left join lateral (
        select n.due
        from jobq.next_due(array[q.queue]) as n (due)
        where not e.is_exact and n.due <= _now and n.due > '0001-01-02 UTC'
    ) as d on true;
end
$$;

revoke all on function jobq_private.waiting_counts from public;

comment on function jobq_private.waiting_counts is
'Counts the jobs that wait in each queue, up to an end.';

-- Purpose: make wider buckets of the history from narrow ones: all that lie between two
-- moments and are over.
-- Invariant: of each bucket at most 20 pairs, the rest as (other). Raises: nothing.
create or replace function jobq_private.widen_history(
    narrow integer, wide integer, since timestamptz, until timestamptz
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    _width constant interval := wide * interval '1 min';
    _from constant timestamptz := date_bin(_width, since, '2000-01-01 UTC');
    _to constant timestamptz := date_bin(_width, until, '2000-01-01 UTC');
begin
    if _from = _to then
        return;
    end if;
    insert into jobq_private.history (
        minutes, bucket, queue, kind, enqueued, succeeded, failed, dead, cancelled
    )
    select wide, r.bucket, p.queue, p.kind, sum(r.enqueued), sum(r.succeeded),
        sum(r.failed), sum(r.dead), sum(r.cancelled)
    from (
        select date_bin(_width, h.bucket, '2000-01-01 UTC') as bucket, h.queue, h.kind,
            sum(h.enqueued) as enqueued, sum(h.succeeded) as succeeded,
            sum(h.failed) as failed, sum(h.dead) as dead, sum(h.cancelled) as cancelled,
            row_number() over (
                partition by date_bin(_width, h.bucket, '2000-01-01 UTC')
                order by sum(h.enqueued + h.succeeded) desc, h.queue, h.kind
            ) as place
        from jobq_private.history as h
        where h.minutes = narrow and h.bucket >= _from and h.bucket < _to
        group by 1, 2, 3
    ) as r
    cross join lateral (
        select case when r.place <= 20 then r.queue else '(other)' end as queue,
            case when r.place <= 20 then r.kind else '(other)' end as kind
    ) as p
    group by r.bucket, p.queue, p.kind
    on conflict on constraint history_pkey do nothing;

    insert into jobq_private.latency (minutes, bucket, counts)
    select wide, s.bucket, array_agg(s.jobs order by s.n)
    from (
        select date_bin(_width, l.bucket, '2000-01-01 UTC') as bucket, c.n,
            sum(c.jobs) as jobs
        from jobq_private.latency as l
        cross join unnest(l.counts) with ordinality as c (jobs, n)
        where l.minutes = narrow and l.bucket >= _from and l.bucket < _to
        group by 1, 2
    ) as s
    group by s.bucket
    on conflict on constraint latency_pkey do nothing;
end
$$;

revoke all on function jobq_private.widen_history from public;

comment on function jobq_private.widen_history is
'Makes wider buckets of the history from narrow ones that are over.';

-- Purpose: say what threatens the queue's promise, each with its remedy.
-- Invariant: reads only; what is not in order comes first. The client's time, and its
-- release are compared where they are given. Raises: nothing.
-- Argument client_time: the client's clock; null means that it is not compared.
-- Argument release: the client's release: for each function an array of the MD5 sums
-- that its body may have; null means that it is not compared.
-- Returns: what is not in order comes first.
-- Column subject: what was looked at: snapshot, leases, workers, partitions and more,
-- see [reliability](reliability.md).
-- Column is_ok: whether it is in order.
-- Column finding: what was found.
-- Column remedy: what to do.
-- Example: select subject, finding, remedy from jobq.health() where not is_ok;
create or replace function jobq.health(
    client_time timestamptz default null, release jsonb default null
)
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
stable
parallel restricted
security definer
set search_path = pg_catalog, pg_temp
as $$
    select h.subject, h.is_ok, h.finding, case when not h.is_ok then h.remedy end
    from (
        select * from jobq_private.server_health()
        union all
        select * from jobq_private.setting_health()
        union all
        select * from jobq_private.queue_health()
        union all
        select * from jobq_private.client_health(health.client_time, health.release)
    ) as h
    order by h.is_ok, h.subject
$$;

revoke all on function jobq.health from public;
grant execute on function jobq.health to jobq_operator, jobq_reader;

comment on function jobq.health is
'Says what threatens the queue''s promise, each with its remedy: settings, snapshots, leases, workers, partitions; a client''s clock and release too where it gives them.';

-- Purpose: everything that must happen from time to time: recover, tick, prune,
-- partitions, the history of charts.
-- Invariant: any number of callers, one does the work and the others return at once
-- with no row. Each task is repeated while it comes back full, for half a second at most.
-- A task that fails is undone, and it alone, so here OTHERS is caught; health() says why
-- until it has done its work again.
-- Raises: nothing.
-- Never: DEDUP_CONFLICT.
-- Returns: no row when somebody else is at it.
-- Column task: recovered, expired, resolved, ticked, pruned_jobs, pruned_keys, pruned_workflows, rolled_up,
-- made_partitions or dropped_partitions.
-- Column affected: how many; null when the task has failed.
-- Column has_more: whether more is to be done at once.
-- Example: select * from jobq.maintain();
create or replace function jobq.maintain()
returns table (task text, affected bigint, has_more boolean)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _task text;
begin
    if not pg_try_advisory_xact_lock(jobq_private.lock_class('maintaining'), 0) then
        return;
    end if;
    foreach _task in array array[
        'recovered', 'expired', 'resolved', 'ticked', 'pruned_jobs', 'pruned_keys',
        'pruned_workflows', 'rolled_up',
        'made_partitions', 'dropped_partitions'
    ] loop
        begin
            return query select _task, u.affected, u.has_more
            from jobq_private.upkeep(_task, interval '0.5 s') as u;
            delete from jobq_private.failed_task as f where f.task = _task;
        exception
            when others then
                insert into jobq_private.failed_task as f (task, sqlstate, error)
                values (_task, sqlstate, left(sqlerrm, 512))
                on conflict on constraint failed_task_pkey do update
                set sqlstate = excluded.sqlstate, error = excluded.error,
                    failed_at = now(), failures = f.failures + 1;
                return query values (_task, null::bigint, false);
        end;
    end loop;
end
$$;

revoke all on function jobq.maintain from public;
grant execute on function jobq.maintain to jobq_worker, jobq_operator;

comment on function jobq.maintain is
'Recovers expired leases, ends jobs that expired, releases what waits for jobs that have ended, fires schedules that are due, prunes jobs, keys, workers, steps and events, keeps the history of charts, makes and drops partitions; safe for any number of callers.';

-- Purpose: what Prometheus is told about the queue; queue is null for figures of all.
-- Invariant: bounded: of long queues what waits is told as waiting_counts() has it, up to a
-- minute old; the dead are read by their index, and the newest few thousand ids. Rates are of the last minute, latency and failures of the last 1,000 jobs that
-- ended within five minutes; where there was none, there is no row. Raises: nothing.
-- Column name: queue_backlog, running_jobs, blocked_jobs, expired_leases, oldest_runnable_seconds, lanes,
-- closed_lanes, dlq_size, enqueue_qps, job_latency_p95_seconds or fail_rate.
-- Column queue: null for figures of all queues.
-- Column value: the figure.
-- Example: select * from jobq.metrics();
create or replace function jobq.metrics()
returns table (name text, queue text, value double precision)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
begin
    return query
    select m.name, l.queue, m.value
    from (
        select
            coalesce(w.queue, r.queue) as queue,
            coalesce(w.queued + w.scheduled + w.retrying, 0) as waiting,
            coalesce(r.running, 0) as running,
            coalesce(r.expired, 0) as expired,
            coalesce(extract(epoch from _now - w.oldest), 0) as oldest
        from jobq_private.waiting_counts() as w
        full join (
            select
                j.queue, count(*) as running,
                count(*) filter (where j.lease_expires_at < _now) as expired
            from jobq_private.job as j
            where j.state = 'running'
            group by j.queue
        ) as r on r.queue = w.queue
    ) as l
    cross join lateral (
        values
        ('queue_backlog', l.waiting::double precision),
        ('running_jobs', l.running),
        ('expired_leases', l.expired),
        ('oldest_runnable_seconds', l.oldest)
    ) as m (name, value);

    return query
    select 'blocked_jobs', j.queue, count(*)::double precision
    from jobq_private.job as j
    where j.state = 'blocked'
    group by j.queue;

    return query
    select m.name, l.queue, m.value
    from (
        select
            l.queue, count(*) as lanes, count(*) filter (where l.state <> 'open') as closed
        from jobq_private.lane as l
        group by l.queue
    ) as l
    cross join lateral (
        values ('lanes', l.lanes::double precision), ('closed_lanes', l.closed)
    ) as m (name, value);

    return query
    select 'dlq_size', a.queue, count(*)::double precision
    from jobq_private.job_archive as a
    where a.state = 'dead'
    group by a.queue;

    return query
    select 'enqueue_qps', null, case
        when count(*) < 5000 then count(*) / 60.0
        else 5000 / greatest(0.001, extract(epoch from
            _now - jobq_private.id_time((array_agg(s.job_id))[5000])))
    end::double precision
    from (
        select j.job_id
        from jobq.job as j
        where j.job_id >= jobq_private.id_floor(_now - interval '1 min')
        order by j.job_id desc
        limit 5000
    ) as s;

    return query
    select m.name, null, m.value
    from (
        select
            percentile_cont(0.95) within group (
                order by extract(epoch from r.finished_at - r.created_at)
            ) as latency,
            avg((r.state = 'dead')::integer)::double precision as failed
        from (
            select a.state, a.created_at, a.finished_at
            from jobq_private.job_archive as a
            where a.state in ('succeeded', 'dead')
            and a.finished_at > _now - interval '2 days'
            order by a.job_id desc
            limit 1000
        ) as r
        where r.finished_at > _now - interval '5 min'
    ) as s
    cross join lateral (
        values ('job_latency_p95_seconds', s.latency), ('fail_rate', s.failed)
    ) as m (name, value)
    where m.value is not null;
end
$$;

revoke all on function jobq.metrics from public;
grant execute on function jobq.metrics to jobq_operator, jobq_reader;

comment on function jobq.metrics is
'Returns the queue''s figures for Prometheus: backlog, dead jobs, rates and latency.';

-- Purpose: one row for each queue that has jobs or is declared.
-- Invariant: of the live jobs reads some 50,000 at most, and what runs; of the archive the dead
-- and the last minute.
-- oldest_runnable is how long the job that has waited longest could have run already.
-- Raises: nothing.
-- Column queued: how many wait and could run now.
-- Column scheduled: how many wait for their run_at.
-- Column running: how many run.
-- Column retrying: how many wait for another attempt.
-- Column dead: how many are dead, and not yet redriven or dropped.
-- Column oldest_runnable: for how long the job that has waited longest could have run;
-- null when none waits.
-- Column lanes: how many concurrency keys have work, by priority.
-- Column closed_lanes: how many of these may start none now: full, held, with their rate spent, or
-- with no job due.
-- Column is_exact: whether queued, scheduled and retrying are counts of now. Where more than
-- 10,000 jobs wait in a queue (fewer where there are many queues), they are what maintain()
-- counted last, about a minute ago, or until it has counted, those that were looked at.
-- Column blocked: how many wait for other jobs.
-- Example: select * from jobq.queue_stats();
create or replace function jobq.queue_stats()
returns table (
    queue text,
    queued bigint,
    scheduled bigint,
    running bigint,
    retrying bigint,
    dead bigint,
    oldest_runnable interval,
    finished_last_minute bigint,
    is_paused boolean,
    lanes bigint,
    closed_lanes bigint,
    is_exact boolean,
    blocked bigint
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    with live as (
        select
            coalesce(w.queue, r.queue) as queue, w.queued, w.scheduled, r.running,
            w.retrying, greatest(now() - w.oldest, interval '0') as oldest_runnable, w.is_exact
        from jobq_private.waiting_counts() as w
        full join (
            select j.queue, count(*) as running
            from jobq_private.job as j
            where j.state = 'running'
            group by j.queue
        ) as r on r.queue = w.queue
    ),
    held as (
        select j.queue, count(*) as blocked
        from jobq_private.job as j
        where j.state = 'blocked'
        group by j.queue
    ),
    ended as (
        select a.queue, count(*) as dead
        from jobq_private.job_archive as a
        where a.state = 'dead'
        group by a.queue
    ),
    keyed as (
        select
            l.queue, count(*) as lanes, count(*) filter (where l.state <> 'open') as closed
        from jobq_private.lane as l
        group by l.queue
    ),
    recent as (
        select a.queue, count(*) as finished
        from jobq_private.job_archive as a
        where a.finished_at > now() - interval '1 min'
        group by a.queue
    )
    select
        n.queue, coalesce(l.queued, 0), coalesce(l.scheduled, 0), coalesce(l.running, 0),
        coalesce(l.retrying, 0), coalesce(e.dead, 0), l.oldest_runnable,
        coalesce(r.finished, 0), coalesce(jobq_private.is_paused(n.queue), false),
        coalesce(k.lanes, 0), coalesce(k.closed, 0), coalesce(l.is_exact, true),
        coalesce(h.blocked, 0)
    from (
        select l.queue from live as l
        union select h.queue from held as h
        union select e.queue from ended as e
        union select r.queue from recent as r
        union select q.queue from jobq_private.queue as q
    ) as n
    left join live as l on l.queue = n.queue
    left join held as h on h.queue = n.queue
    left join ended as e on e.queue = n.queue
    left join recent as r on r.queue = n.queue
    left join keyed as k on k.queue = n.queue
    order by n.queue
$$;

revoke all on function jobq.queue_stats from public;
grant execute on function jobq.queue_stats to jobq_operator, jobq_reader;

comment on function jobq.queue_stats is
'Returns for each queue how many jobs wait, run, retry and are dead, and how long the oldest has waited.';

-- Purpose: whether jobs can be taken in here (queue) and looked up (repo).
-- Invariant: touches what the two need; a server that only reads has no queue.
-- Raises: nothing.
-- Returns: one row.
-- Column queue: ok, or error(reason).
-- Column repo: ok, or error(reason).
-- Example: select * from jobq.ready();
create or replace function jobq.ready()
returns table (queue text, repo text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from jobq_private.job limit 1;
    perform from jobq_private.setting;
    return query select
        case
            when pg_is_in_recovery() or current_setting('transaction_read_only')::boolean
            then 'error(read_only)'
            else 'ok'
        end,
        'ok';
end
$$;

revoke all on function jobq.ready from public;
grant execute on function jobq.ready
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.ready is
'Says whether jobs can be taken in (queue) and looked up (repo): ok, or error(reason).';

-- Purpose: how far what is read here may lie behind the primary.
-- Invariant: reads only. Nothing has been missed where all that came is replayed and the
-- primary is connected; else it is the time since the last commit that was replayed.
-- Raises: nothing.
-- Returns: null on a primary, which lies behind nobody.
-- Example: select jobq.replica_lag();
create or replace function jobq.replica_lag()
returns interval
language sql
stable
parallel restricted
security definer
set search_path = pg_catalog, pg_temp
as $$
    select case
        when not pg_is_in_recovery() then null
        when exists (select from pg_stat_wal_receiver as w where w.pid is not null)
        and pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn()
        then interval '0'
        else greatest(clock_timestamp() - pg_last_xact_replay_timestamp(), interval '0')
    end
$$;

revoke all on function jobq.replica_lag from public;
grant execute on function jobq.replica_lag to jobq_operator, jobq_reader;

comment on function jobq.replica_lag is
'Returns how far a standby may lie behind its primary, and null on a primary.';

reset role;

-- Deploy jobq:workflow to pg
-- Made by sql/snapshot.py from sql/workflow/: edit that.
set local role jobq_owner;

-- Purpose: the graph of a live job; a new one for null, or where it is in none.
-- Invariant: a job in none becomes a node of its new graph, by its kind. Raises: JQ001, JQ002.
-- Never: NULL_ARGUMENT.
create or replace function jobq_private.graph_id(graph_of uuid)
returns uuid
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _graph_id uuid;
    _job jobq.job;
begin
    if graph_of is null then
        return jobq_private.new_id();
    end if;
    _job := jobq.get_job(graph_of);
    if _job.finished_at is not null then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s is %s: its graph takes no more jobs from it', graph_of, _job.state
        ));
    end if;
    insert into jobq_private.node as n (job_id, graph_id, name)
    values (graph_of, jobq_private.new_id(), _job.kind)
    on conflict on constraint node_pkey do nothing;
    select n.graph_id into _graph_id from jobq_private.node as n where n.job_id = graph_of;
    return _graph_id;
end
$$;

revoke all on function jobq_private.graph_id from public;

comment on function jobq_private.graph_id is
'The graph of a live job, or a new one.';

-- Purpose: the jobs of a graph as given, an array of objects with name, after and before.
-- Invariant: reads nothing. Raises: 22004, 22023.
create or replace function jobq_private.graph_nodes(graph jsonb)
returns jsonb
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem text;
    _nodes constant jsonb := graph -> 'jobs';
begin
    if graph is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'graph');
    elsif jsonb_typeof(graph) <> 'object' or graph - 'jobs' <> '{}'
        or jsonb_typeof(_nodes) is distinct from 'array'
        or jsonb_array_length(_nodes) not between 1 and 100000
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'graph must be an object with jobs, an array of 1 to 100000'
        );
    end if;
    select format('job %s: %s', n.place, case
        when jsonb_typeof(n.node) <> 'object' then 'must be an object'
        when jsonb_typeof(n.node -> 'name') is distinct from 'string'
            or length(n.node ->> 'name') not between 1 and 256
        then 'name must be a text of 1 to 256 characters'
        else 'after and before must be arrays of names and ids'
    end) into _problem
    from jsonb_array_elements(_nodes) with ordinality as n (node, place)
    where jsonb_typeof(n.node) <> 'object'
    or jsonb_typeof(n.node -> 'name') is distinct from 'string'
    or length(n.node ->> 'name') not between 1 and 256
    or coalesce(jsonb_typeof(n.node -> 'after'), 'array') not in ('array', 'null')
    or coalesce(jsonb_typeof(n.node -> 'before'), 'array') not in ('array', 'null')
    or jsonb_path_exists(n.node, '$.after[*] ? (@.type() != "string" && @ != null)')
    or jsonb_path_exists(n.node, '$.before[*] ? (@.type() != "string" && @ != null)')
    limit 1;
    if _problem is null then
        select format('name %s is given twice', n.node ->> 'name') into _problem
        from jsonb_array_elements(_nodes) as n (node)
        group by n.node ->> 'name'
        having count(*) > 1
        limit 1;
    end if;
    if _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;
    return _nodes;
end
$$;

revoke all on function jobq_private.graph_nodes from public;

comment on function jobq_private.graph_nodes is
'The jobs of a graph as given.';

-- Purpose: enqueue_graph(), also for a schedule, whose graph was checked when it was declared.
-- Invariant: as there. Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010.
create or replace function jobq_private.add_graph(graph jsonb, graph_of uuid, is_checked boolean)
returns table (name text, job_id uuid)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _nodes jsonb := jobq_private.graph_nodes(add_graph.graph);
    _graph_id constant uuid := jobq_private.graph_id(add_graph.graph_of);
    _names text[];
    _ids uuid[];
    _others uuid[];
    _arrows jobq_private.arrow[];
    _size constant integer := jsonb_array_length(_nodes);
begin
    select array_agg(n.node ->> 'name' order by n.place), array_agg(jobq_private.new_id())
    into _names, _ids
    from jsonb_array_elements(_nodes) with ordinality as n (node, place);
    _others := jobq_private.graph_others(_nodes, _names, _graph_id);
    _arrows := jobq_private.graph_arrows(_nodes, _names, _others, _graph_id);
    if jobq_private.join_alone(_arrows, _others, _size) then
        _arrows := jobq_private.graph_arrows(_nodes, _names, _others, _graph_id);
    end if;
    perform jobq_private.check_arrows(_arrows, _names || array(
        select coalesce(n.name, o.job_id::text)
        from unnest(_others) with ordinality as o (job_id, place)
        left join jobq_private.node as n on n.job_id = o.job_id
        order by o.place
    ));
    perform jobq_private.hold_children(array(
        select _others[a.child - _size] from unnest(_arrows) as a
        where a.child > _size and a.parent <= _size
    ));
    perform jobq_private.store_nodes(
        _nodes, _names, _ids, _others, array(
            select a from unnest(_arrows) as a where a.child <= _size or a.parent <= _size
        ), _graph_id, add_graph.is_checked
    );
    return query
    select n.name, n.job_id from unnest(_names, _ids) as n (name, job_id);
end
$$;

revoke all on function jobq_private.add_graph from public;

comment on function jobq_private.add_graph is
'Adds jobs that wait for each other, all or none.';

-- Purpose: where the children of each job begin in a list of arrows by parent, less one; and in
-- the end where the last ones end.
-- Invariant: reads nothing. Raises: nothing.
create or replace function jobq_private.arrow_ends(arrows jobq_private.arrow[], size integer)
returns integer[]
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select array_agg(c.before order by c.place)
    from (
        select
            p.place,
            (sum(coalesce(a.children, 0)) over (order by p.place) - coalesce(a.children, 0))::integer as before
        from generate_series(1, arrow_ends.size + 1) as p (place)
        left join (
            select w.parent, count(*) as children from unnest(arrow_ends.arrows) as w group by w.parent
        ) as a on a.parent = p.place
    ) as c
$$;

revoke all on function jobq_private.arrow_ends from public;

comment on function jobq_private.arrow_ends is
'Where the children of each job begin in a list of arrows.';

-- Purpose: a new job as one of a graph: whether it waits, and whether others wait for it.
-- Invariant: reads nothing. Raises: nothing.
create or replace function jobq_private.as_node(job jobq_private.new_job, waits_in uuid, is_awaited boolean)
returns jobq_private.new_job
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    job.callback_of := waits_in;
    job.is_awaited := as_node.is_awaited;
    return job;
end
$$;

revoke all on function jobq_private.as_node from public;

comment on function jobq_private.as_node is
'A new job as one of a graph.';

-- Purpose: mark the live jobs that these children wait for, so that their ends leave a look.
-- Invariant: under the rows' locks, before they end; what somebody has locked is marked at a
-- later look. Raises: nothing.
create or replace function jobq_private.await_parents(children uuid[], queues text[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _found tid[];
begin
    _found := array(
        select j.ctid
        from jobq_private.job as j
        where j.job_id = any(array(
            select e.parent
            from jobq_private.edge as e
            where e.child = any(await_parents.children) and e.is_open
        ))
        and not j.is_awaited
        and (await_parents.queues is null or j.queue = any(await_parents.queues))
        order by j.job_id
        for no key update skip locked
    );
    update jobq_private.job as j set is_awaited = true where j.ctid = any(_found);
end
$$;

revoke all on function jobq_private.await_parents from public;

comment on function jobq_private.await_parents is
'Marks the live jobs that these children wait for.';

-- Purpose: queue or cancel a job that waits for the end of a batch, unless it has moved before.
-- Invariant: one that somebody holds is left. Returns how many moved: 0 or 1. Raises: nothing.
create or replace function jobq_private.call_back(job_id uuid, state text)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue text;
begin
    update jobq_private.job as j
    set
        state = call_back.state,
        run_at = greatest(j.run_at, now()),
        cancel_reason = case
            when call_back.state = 'cancelled' then 'its batch has ended otherwise'
        end
    where j.job_id = (
        select c.job_id
        from jobq_private.job as c
        where c.job_id = call_back.job_id and c.state = 'blocked'
        for update skip locked
    )
    returning j.queue into _queue;
    if not found then
        return 0;
    elsif call_back.state = 'queued' then
        perform jobq_private.call_lanes(array[call_back.job_id]);
        perform jobq_private.wake(array[_queue]);
    end if;
    return 1;
end
$$;

revoke all on function jobq_private.call_back from public;

comment on function jobq_private.call_back is
'Queues or cancels a job that waits for the end of a batch.';

-- Purpose: cancel those of these blocked jobs that can never run, since a parent, of parallel
-- arrays, has ended as it has.
-- Invariant: the caller has the rows that are held. Their open edges stay, so that a redrive has
-- them wait again. Returns how many. Raises: nothing.
create or replace function jobq_private.cancel_children(
    children uuid[], parents uuid[], ends text[], held uuid[]
)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_hashjoin = off
as $$
declare
    _cancelled bigint;
begin
    if not exists (
        select from unnest(cancel_children.ends) as t (ended_as) where t.ended_as <> 'succeeded'
    ) then
        return 0;
    end if;
    update jobq_private.job as j
    set
        state = 'cancelled',
        cancel_reason = format('job_id %s, which it waited for, is %s', d.parent, d.ended_as),
        last_error_code = case d.ended_as when 'gone' then 'PARENT_GONE' else 'PARENT_FAILED' end,
        last_error = format('job_id %s is %s', d.parent, d.ended_as)
    from (
        select distinct on (t.child) t.child, t.parent, t.ended_as
        from unnest(
            cancel_children.children, cancel_children.parents, cancel_children.ends
        ) as t (child, parent, ended_as)
        join jobq_private.edge as e on e.child = t.child and e.parent = t.parent and e.is_open
        where jobq_private.follows(t.ended_as, e.after_failure) = 'dooms'
        order by t.child, t.parent
    ) as d
    where j.job_id = d.child
    and j.state = 'blocked'
    and j.job_id = any(cancel_children.held);
    get diagnostics _cancelled = row_count;
    return _cancelled;
end
$$;

revoke all on function jobq_private.cancel_children from public;

comment on function jobq_private.cancel_children is
'Cancels jobs that wait for one that is dead or cancelled.';

-- Purpose: refuse an after_failure that does not exist.
-- Invariant: reads nothing. Raises: 22023.
create or replace function jobq_private.check_after_failure(jobs jobq_private.new_job[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from unnest(check_after_failure.jobs) as j
        where j.after_failure not in ('cancel', 'wait', 'run')
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after_failure must be cancel, wait or run'
        );
    end if;
end
$$;

revoke all on function jobq_private.check_after_failure from public;

comment on function jobq_private.check_after_failure is
'Refuses an after_failure that does not exist.';

-- Purpose: refuse a graph whose arrows lead round, and say where.
-- Invariant: a graph that lists parents first is known to be sound at a glance; any other one
-- is worked through once, each job and arrow. Reads nothing. Raises: 22023.
create or replace function jobq_private.check_arrows(arrows jobq_private.arrow[], names text[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _size constant integer := cardinality(names);
    _left integer[] := array_fill(0, array[_size]);
    _first integer[];
    _children integer[];
    _free integer[];
    _done integer := 0;
    _place integer;
    _arrow jobq_private.arrow;
    _n integer := 0;
begin
    if not exists (select from unnest(arrows) as a where a.parent >= a.child) then
        return;
    end if;
    _children := array_fill(0, array[cardinality(arrows)]);
    for _arrow in select a.* from unnest(arrows) as a order by a.parent loop
        _n := _n + 1;
        _children[_n] := _arrow.child;
        _left[_arrow.child] := _left[_arrow.child] + 1;
    end loop;
    _first := jobq_private.arrow_ends(arrows, _size);
    _free := array(select p from generate_series(1, _size) as p where _left[p] = 0);
    while _done < cardinality(_free) loop
        _done := _done + 1;
        for _n in _first[_free[_done]] + 1 .. _first[_free[_done] + 1] loop
            _place := _children[_n];
            _left[_place] := _left[_place] - 1;
            if _left[_place] = 0 then
                _free[cardinality(_free) + 1] := _place;
            end if;
        end loop;
    end loop;
    if _done < _size then
        perform jobq_private.raise_error(
            'GRAPH_CYCLE', jobq_private.cycle_among(arrows, names, _left)
        );
    end if;
end
$$;

revoke all on function jobq_private.check_arrows from public;

comment on function jobq_private.check_arrows is
'Refuses a graph whose arrows lead round.';

-- Purpose: refuse an event that cannot be meant.
-- Invariant: reads the limits of a payload. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_event(event text, payload jsonb)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(check_event.event, check_event.payload) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'event and payload');
    elsif length(check_event.event) not between 1 and 256 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'event must have 1 to 256 characters'
        );
    end if;
    perform jobq_private.check_results(
        '{00000000-0000-0000-0000-000000000000}', '{0}', jsonb_build_array(check_event.payload)
    );
end
$$;

revoke all on function jobq_private.check_event from public;

comment on function jobq_private.check_event is
'Refuses an event that cannot be meant.';

-- Purpose: refuse the graph of a schedule that could not be added at each of its slots.
-- Invariant: its jobs wait for each other alone, and no name is that of the schedule's own
-- job, its kind. Raises: 22004, 22023, JQ001, JQ005, JQ006.
-- Never: QUEUE_FULL.
create or replace function jobq_private.check_graph(graph jsonb, kind text)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _nodes constant jsonb := jobq_private.graph_nodes(graph);
    _names text[];
    _jobs jobq_private.new_job[];
begin
    select array_agg(n.node ->> 'name' order by n.place) into _names
    from jsonb_array_elements(_nodes) with ordinality as n (node, place);
    if kind = any(_names)
        or jobq_private.graph_others(_nodes, _names, null) <> '{}'
        or jsonb_path_exists(_nodes, '$[*].batch_id')
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'a graph of a schedule names its own jobs alone, none by the schedule''s kind, and no batch'
        );
    end if;
    perform jobq_private.check_arrows(
        jobq_private.graph_arrows(_nodes, _names, '{}', null), _names
    );
    _jobs := jobq_private.node_jobs(_nodes);
    for _n in 1 .. cardinality(_jobs) loop
        _jobs[_n].schedule_id := jobq_private.id_floor('epoch');
    end loop;
    perform jobq_private.check_new_jobs(_jobs);
    perform jobq_private.check_payload_schemas(_jobs);
end
$$;

revoke all on function jobq_private.check_graph from public;

comment on function jobq_private.check_graph is
'Refuses the graph of a schedule that could not be added at each of its slots.';

-- Purpose: refuse steps that cannot be meant.
-- Invariant: the arrays are parallel and name at most 1,000 steps; the names that wait_for()
-- uses are its own. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_steps(
    job_ids uuid[], attempts integer[], names text[], results jsonb
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _name text;
begin
    perform jobq_private.check_results(
        check_steps.job_ids, check_steps.attempts, check_steps.results
    );
    if num_nulls(check_steps.names, check_steps.results) > 0
        or exists (select from unnest(check_steps.names) as s (name) where s.name is null)
    then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'names and results');
    elsif cardinality(check_steps.names) <> cardinality(check_steps.job_ids)
        or cardinality(check_steps.names) > 1000
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'names: one for each job_id, and at most 1000'
        );
    end if;
    select s.name into _name
    from unnest(check_steps.names) as s (name)
    where length(s.name) not between 1 and 256 or s.name like 'event:%'
    limit 1;
    if found then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'name %s: 1 to 256 characters that do not begin with event:', left(_name, 300)
        ));
    end if;
end
$$;

revoke all on function jobq_private.check_steps from public;

comment on function jobq_private.check_steps is
'Refuses steps that cannot be meant.';

-- Purpose: how these jobs have ended, parallel to them: null for one that lives, gone for one
-- of which there is no trace.
-- Invariant: reads live jobs and the archive with the caller's snapshot, as sets; of the archive
-- the days since the oldest of the ids. Raises: nothing.
create or replace function jobq_private.ends_of(job_ids uuid[])
returns text[]
language plpgsql
stable
strict
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_hashjoin = on
set enable_mergejoin = off
as $$
declare
    _ended constant uuid[] := array(
        select i.job_id from unnest(ends_of.job_ids) as i (job_id)
        except
        select j.job_id from jobq_private.job as j where j.job_id = any(ends_of.job_ids)
    );
    _since constant timestamptz := (
        select jobq_private.id_time(i.job_id) - interval '1 day'
        from unnest(_ended) as i (job_id)
        order by i.job_id
        limit 1
    );
begin
    if _ended = '{}' then
        return array_fill(null::text, array[cardinality(ends_of.job_ids)]);
    end if;
    return array(
        select e.state
        from unnest(ends_of.job_ids) with ordinality as i (job_id, n)
        left join (
            select o.job_id, coalesce(l.state, 'gone') as state
            from unnest(_ended) as o (job_id)
            left join (
                select distinct on (a.job_id) a.job_id, a.state
                from jobq_private.job_archive as a
                where a.job_id = any(_ended) and a.finished_at >= _since
                order by a.job_id, a.finished_at desc
            ) as l on l.job_id = o.job_id
        ) as e on e.job_id = i.job_id
        order by i.n
    );
end
$$;

revoke all on function jobq_private.ends_of from public;

comment on function jobq_private.ends_of is
'How jobs have ended, if they have.';

-- Purpose: close edges between children and parents, given as parallel arrays, as far as these
-- have ended; cancel the children that can never run now.
-- Invariant: of a blocked child only by who has its row, and as its parents are seen since. What
-- is locked is left. A child that has ended is released by nobody, and may be redriven, which
-- leaves a look. Returns how many children were cancelled. Raises: nothing.
create or replace function jobq_private.close_edges(children uuid[], parents uuid[], held uuid[], queues text[])
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_hashjoin = off
as $$
declare
    _ends constant text[] := jobq_private.ends_of(parents);
begin
    with over as materialized (
        select e.child, e.parent
        from unnest(children, parents, _ends) as t (child, parent, ended_as)
        join jobq_private.edge as e on e.child = t.child and e.parent = t.parent and e.is_open
        where (
            e.child in (select h.job_id from unnest(close_edges.held) as h (job_id))
            and jobq_private.follows(t.ended_as, e.after_failure) = 'closes'
        )
        or (
            close_edges.queues is null
            and t.ended_as = 'succeeded'
            and not exists (
                select from jobq_private.job as j
                where j.job_id = e.child and j.state = 'blocked'
            )
        )
        for update of e skip locked
    )
    update jobq_private.edge as e
    set is_open = false
    from over as o
    where e.child = o.child and e.parent = o.parent;
    return jobq_private.cancel_children(children, parents, _ends, held);
end
$$;

revoke all on function jobq_private.close_edges from public;

comment on function jobq_private.close_edges is
'Closes the edges of parents that have ended, and cancels children that can never run.';

-- Purpose: one way round in a graph, in words: a waits for b waits for a.
-- Invariant: waiting has of each job how many parents were left in the end; whoever has one
-- can be gone back from for ever. Reads nothing. Raises: nothing.
create or replace function jobq_private.cycle_among(arrows jobq_private.arrow[], names text[], waiting integer[])
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _parent integer[] := array_fill(0, array[cardinality(names)]);
    _arrow jobq_private.arrow;
    _path integer[] := '{}'::integer[];
    _at integer;
begin
    for _arrow in
        select a.* from unnest(arrows) as a where waiting[a.child] > 0 and waiting[a.parent] > 0
        order by a.child desc
    loop
        _parent[_arrow.child] := _arrow.parent;
        _at := _arrow.child;
    end loop;
    while _at <> all(_path) loop
        _path := _path || _at;
        _at := _parent[_at];
    end loop;
    _path := _path[array_position(_path, _at):] || _at;
    return (
        select string_agg(left(names[p.place], 64), ' waits for ' order by p.n)
        from unnest(_path[:20]) with ordinality as p (place, n)
    );
end
$$;

revoke all on function jobq_private.cycle_among from public;

comment on function jobq_private.cycle_among is
'One way round in a graph, in words.';

-- Purpose: the open edges between these parents and any children, and these children and any
-- parents, behind which something is left to do.
-- Invariant: reads only; at most 5,000, as parallel arrays; null for none. A child that is not
-- blocked gets no more than edges closed of parents that have succeeded, which stays true. Who
-- does not see all queues must not take for gone what it cannot see. Raises: nothing.
create or replace function jobq_private.edges_to_settle(
    parents uuid[], children uuid[], queues text[], out over_children uuid[],
    out over_parents uuid[]
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_hashjoin = off
as $$
declare
    _below uuid[];
    _above uuid[];
    _failures text[];
begin
    select array_agg(e.child), array_agg(e.parent), array_agg(e.after_failure)
    into _below, _above, _failures
    from jobq_private.edge as e
    where e.child = any(edges_to_settle.children) and e.is_open;
    select array_agg(t.child), array_agg(t.parent) into over_children, over_parents
    from (
        select o.child, o.parent
        from (
            select e.child, e.parent, e.after_failure, p.ended_as
            from unnest(
                edges_to_settle.parents, jobq_private.ends_of(edges_to_settle.parents)
            ) as p (parent, ended_as)
            join jobq_private.edge as e on e.parent = p.parent and e.is_open
            where p.ended_as is not null
            union all
            select b.child, b.parent, b.after_failure, b.ended_as
            from unnest(_below, _above, _failures, jobq_private.ends_of(_above))
                as b (child, parent, after_failure, ended_as)
            where b.ended_as is not null
        ) as o
        left join jobq_private.job as c on c.job_id = o.child and c.state = 'blocked'
        where (
            o.ended_as = 'succeeded'
            or (
                c.job_id is not null
                and jobq_private.follows(o.ended_as, o.after_failure) is not null
            )
        )
        and (edges_to_settle.queues is null or o.ended_as <> 'gone')
        limit 5000
    ) as t;
end
$$;

revoke all on function jobq_private.edges_to_settle from public;

comment on function jobq_private.edges_to_settle is
'The open edges of parents that have ended.';

-- Purpose: take looks away behind which nothing is left to do, and put off the others.
-- Invariant: the caller has locked them, and knows whom they are about; those for batches that
-- somebody else holds stay. Raises: nothing.
create or replace function jobq_private.end_looks(
    looks tid[], parents uuid[], children uuid[], left_alone uuid[], queues text[]
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    with pending as materialized (
        select l.ctid
        from jobq_private.look as l
        where l.ctid = any(end_looks.looks)
        and case l.about
            when 'parent' then l.id in (
                select u.id
                from unnest(
                    jobq_private.unsettled_parents(end_looks.parents, end_looks.queues)
                ) as u (id)
            )
            when 'child' then l.id in (
                select u.id
                from unnest(
                    jobq_private.unsettled_children(end_looks.children, end_looks.queues)
                ) as u (id)
            )
            else l.id = any(end_looks.left_alone)
            or jobq_private.is_batch_due(l.id, end_looks.queues)
        end
    ),
    kept as (
        update jobq_private.look as l
        set look_at = clock_timestamp() + least(
            greatest(clock_timestamp() - l.created_at, interval '10 ms'), interval '1 s'
        )
        from pending as p
        where l.ctid = p.ctid
    )
    delete from jobq_private.look as l
    where l.ctid = any(end_looks.looks) and l.ctid not in (select p.ctid from pending as p);
end
$$;

revoke all on function jobq_private.end_looks from public;

comment on function jobq_private.end_looks is
'Takes looks away behind which nothing is left to do.';

-- Purpose: let new jobs become members of these batches.
-- Invariant: who adds holds the lock of the batch shared until the commit, and then looks
-- whether it has ended; resolve() ends a batch only with the lock for itself. So no batch
-- ends while a member is on its way. A transaction with one snapshot cannot see an end since:
-- it locks the batch's row, and fails to serialize. Raises: JQ001, JQ002, 40001.
-- Never: NULL_ARGUMENT.
create or replace function jobq_private.enter_batches(batch_ids uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _batching constant integer := jobq_private.lock_class('batching');
    _batch_id uuid;
    _batch jobq_private.batch;
begin
    for _batch_id in
        select distinct b.batch_id from unnest(enter_batches.batch_ids) as b (batch_id) order by 1
    loop
        perform pg_advisory_xact_lock_shared(_batching, hashtext(_batch_id::text));
        if current_setting('transaction_isolation') <> 'read committed' then
            perform from jobq_private.batch as b where b.batch_id = _batch_id for share;
        end if;
        _batch := jobq_private.find_batch(_batch_id);
        if _batch.ended_at is not null then
            perform jobq_private.raise_error('ILLEGAL_STATE', format(
                'batch_id %s ended at %s', _batch_id, _batch.ended_at
            ));
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.enter_batches from public;

comment on function jobq_private.enter_batches is
'Lets new jobs become members of batches that have not ended.';

-- Purpose: what a blocked job waits for, down to the jobs that hold it up, and why those do not
-- run.
-- Invariant: reads only; looks at 1,000 jobs above it, and tells of the first five that
-- wait for none themselves. Raises: nothing.
-- Never: NULL_ARGUMENT, JOB_NOT_FOUND.
create or replace function jobq_private.explain_blocked(job jobq.job)
returns table (reason text, explanation text)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _holder record;
begin
    return query
    select 'blocked', format(
        'waits for %s of %s jobs', count(*) filter (where e.is_open), count(*)
    )
    from jobq_private.edge as e
    where e.child = job.job_id
    having count(*) > 0;
    return query
    select 'blocked', format(
        'waits for the end of batch %s: %s of its members live, %s', b.batch_id,
        (select count(*) from jobq_private.job as m where m.batch_id = b.batch_id),
        case when b.sealed_at is null then 'not sealed' else 'sealed at ' || b.sealed_at end
    )
    from jobq_private.batch as b
    where b.batch_id::text = job.metadata ->> 'batch_id'
    and job.job_id in (b.on_success, b.on_end, b.on_first_death);
    for _holder in
        select h.job_id, h.state
        from jobq_private.holders(job.job_id) as h
        order by h.job_id
        limit 5
    loop
        return query
        select 'held_up', format(
            'job_id %s, %s: %s', _holder.job_id, coalesce(j.kind, 'which is gone'),
            coalesce(h.reason || ', ' || h.explanation, '')
        )
        from (values (1)) as one (n)
        left join jobq.job as j on j.job_id = _holder.job_id and _holder.state is not null
        left join lateral (
            select x.* from jobq.explain(j.job_id) as x limit 1
        ) as h on true;
    end loop;
end
$$;

revoke all on function jobq_private.explain_blocked from public;

comment on function jobq_private.explain_blocked is
'What a blocked job waits for, down to the jobs that hold it up.';

-- Purpose: a batch, or an error when there is none.
-- Invariant: reads only. Raises: 22004, JQ001.
create or replace function jobq_private.find_batch(batch_id uuid)
returns jobq_private.batch
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _batch jobq_private.batch;
begin
    if find_batch.batch_id is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'batch_id');
    end if;
    select b.* into _batch
    from jobq_private.batch as b
    where b.batch_id = find_batch.batch_id;
    if not found then
        perform jobq_private.raise_error(
            'BATCH_NOT_FOUND', format('batch_id %s', find_batch.batch_id)
        );
    end if;
    return _batch;
end
$$;

revoke all on function jobq_private.find_batch from public;

comment on function jobq_private.find_batch is
'Returns a batch.';

-- Purpose: link new jobs to those that they wait for, and to the batches they belong to.
-- Invariant: locks no parent, which may run for long: a look is left, so that resolve() finds
-- after the commit what has ended meanwhile. Those that this very transaction has made, which
-- nobody else can hold, are marked as awaited, so that they leave a trace. job_ids is parallel to jobs; null for one that
-- was not made. Raises: 22004, 22023, JQ001, JQ002.
create or replace function jobq_private.follow(jobs jobq_private.new_job[], job_ids uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _parents uuid[];
    _missing uuid;
begin
    if not exists (
        select from unnest(follow.jobs) as j
        where j.after is not null or j.batch_id is not null
    ) then
        return;
    end if;
    perform jobq_private.enter_batches(array(
        select j.batch_id from unnest(follow.jobs) as j where j.batch_id is not null
    ));
    if exists (
        select from unnest(follow.jobs) as j
        cross join lateral unnest(j.after) as a (parent)
        where a.parent is null
    ) then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'after');
    elsif exists (
        select from unnest(follow.jobs) as j where cardinality(j.after) > 100000
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after must have at most 100000 jobs'
        );
    end if;
    perform jobq_private.check_after_failure(follow.jobs);

    insert into jobq_private.edge (child, parent, after_failure)
    select distinct i.job_id, a.parent, coalesce(j.after_failure, 'cancel')
    from unnest(follow.jobs) with ordinality as j
    join unnest(follow.job_ids) with ordinality as i (job_id, n) on i.n = j.ordinality
    cross join lateral unnest(j.after) as a (parent);
    _parents := array(
        select distinct a.parent
        from unnest(follow.jobs) as j
        cross join lateral unnest(j.after) as a (parent)
    );
    select p.parent into _missing
    from unnest(_parents, jobq_private.ends_of(_parents)) as p (parent, ended_as)
    where p.ended_as = 'gone'
    limit 1;
    if found then
        perform jobq_private.raise_error('JOB_NOT_FOUND', format('job_id %s', _missing));
    end if;
    update jobq_private.job as j
    set is_awaited = true
    where j.job_id = any(_parents) and j.created_at = now() and not j.is_awaited;
    insert into jobq_private.look (about, id)
    select 'child', i.job_id
    from unnest(follow.jobs) with ordinality as j
    join unnest(follow.job_ids) with ordinality as i (job_id, n) on i.n = j.ordinality
    where j.after is not null;
end
$$;

revoke all on function jobq_private.follow from public;

comment on function jobq_private.follow is
'Links new jobs to those that they wait for, and to their batches.';

-- Purpose: what follows for a blocked job when one that it waits for has ended: closes (this
-- one holds it up no more), dooms (it can never run), or null: it waits on.
-- Invariant: ended_as is null while the parent lives, gone when there is no trace of it. No SET
-- clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.follows(ended_as text, after_failure text)
returns text
language sql
immutable
parallel safe
security invoker
as $$
    select case
        when $1 is null then null
        when $1 = 'succeeded' or $2 = 'run' then 'closes'
        when $2 = 'cancel' or $1 = 'gone' then 'dooms'
    end
$$;

revoke all on function jobq_private.follows from public;

comment on function jobq_private.follows is
'What follows for a blocked job when one that it waits for has ended.';

-- Purpose: who waits for whom, by places: of the new jobs first, then of the others.
-- Invariant: among the others, only as far as one that is held up leads to one that is waited
-- for, so that check_arrows() sees every way round. Raises: nothing.
create or replace function jobq_private.graph_arrows(nodes jsonb, names text[], others uuid[], graph_id uuid)
returns jobq_private.arrow[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _size constant integer := cardinality(names);
    _arrows jobq_private.arrow[];
    _below jobq_private.arrow[];
begin
    with place as materialized (
        select n.name, n.place::integer as place
        from unnest(graph_arrows.names) with ordinality as n (name, place)
        union all
        select t.name, _size + o.place::integer
        from unnest(graph_arrows.others) with ordinality as o (job_id, place)
        left join jobq_private.node as d
            on d.job_id = o.job_id and d.graph_id = graph_arrows.graph_id
            and d.name <> all(graph_arrows.names)
        cross join lateral (
            select o.job_id::text as name union select d.name where d.name is not null
        ) as t
    ),
    given as materialized (
        select e.place::integer as place, e.node
        from jsonb_array_elements(graph_arrows.nodes) with ordinality as e (node, place)
    )
    select array_agg(row(w.child, w.parent)::jobq_private.arrow) into _arrows
    from (
        select g.place as child, p.place as parent
        from given as g
        cross join lateral jsonb_array_elements_text(
            coalesce(nullif(g.node -> 'after', 'null'), '[]')
        ) as a (name)
        join place as p on p.name = a.name
        union
        select p.place, g.place
        from given as g
        cross join lateral jsonb_array_elements_text(
            coalesce(nullif(g.node -> 'before', 'null'), '[]')
        ) as b (name)
        join place as p on p.name = b.name
    ) as w;
    if graph_arrows.others = '{}' or not exists (
        select from unnest(_arrows) as a where a.child > _size
    ) then
        return coalesce(_arrows, '{}');
    end if;
    select array_agg(row(_size + d.place, a.child)::jobq_private.arrow) into _below
    from (select distinct w.child from unnest(_arrows) as w where w.child > _size) as a
    cross join lateral jobq_private.tree(graph_arrows.others[a.child - _size], 'down') as t (job_id)
    join unnest(graph_arrows.others) with ordinality as d (job_id, place) on d.job_id = t.job_id
    where d.place <> a.child - _size;
    return _arrows || coalesce(_below, '{}');
end
$$;

revoke all on function jobq_private.graph_arrows from public;

comment on function jobq_private.graph_arrows is
'Who waits for whom in a graph, by places.';

-- Purpose: the edges between these jobs, for show_graph().
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.graph_edge_documents(job_ids uuid[])
returns jsonb
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_build_object(
        'parent_id', e.parent,
        'child_id', e.child,
        'after_failure', e.after_failure,
        'is_open', e.is_open
    ) order by e.parent, e.child), '[]')
    from jobq_private.edge as e
    where e.child = any(graph_edge_documents.job_ids)
    and e.parent = any(graph_edge_documents.job_ids)
$$;

revoke all on function jobq_private.graph_edge_documents from public;

comment on function jobq_private.graph_edge_documents is
'The edges between jobs, for show_graph().';

-- Purpose: for each of these jobs that is blocked, one that holds it up: at the end of open edges,
-- and waiting for no job itself; parallel to them, null for the others.
-- Invariant: reads only; looks at each edge among them once, and at none beyond.
-- Raises: nothing.
create or replace function jobq_private.holders_among(job_ids uuid[])
returns uuid[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _size constant integer := cardinality(job_ids);
    _arrows jobq_private.arrow[];
    _first integer[];
    _children integer[];
    _reached integer[];
    _holder integer[] := array_fill(null::integer, array[_size]);
    _child integer;
    _done integer := 0;
begin
    select array_agg(row(c.place, p.place)::jobq_private.arrow) into _arrows
    from unnest(holders_among.job_ids) with ordinality as c (job_id, place)
    join jobq_private.job as j on j.job_id = c.job_id and j.state = 'blocked'
    join jobq_private.edge as e on e.child = c.job_id and e.is_open
    join unnest(holders_among.job_ids) with ordinality as p (job_id, place) on p.job_id = e.parent;
    if _arrows is null then
        return array_fill(null::uuid, array[_size]);
    end if;
    _first := jobq_private.arrow_ends(_arrows, _size);
    _children := array(select a.child from unnest(_arrows) as a order by a.parent);
    _reached := array(
        select distinct a.parent from unnest(_arrows) as a
        except
        select a.child from unnest(_arrows) as a
    );
    foreach _child in array _reached loop
        _holder[_child] := _child;
    end loop;
    while _done < cardinality(_reached) loop
        _done := _done + 1;
        for _n in _first[_reached[_done]] + 1 .. _first[_reached[_done] + 1] loop
            _child := _children[_n];
            if _holder[_child] is null then
                _holder[_child] := _holder[_reached[_done]];
                _reached[cardinality(_reached) + 1] := _child;
            end if;
        end loop;
    end loop;
    return array(
        select holders_among.job_ids[h.place]
        from unnest(_holder) with ordinality as h (place, n)
        order by h.n
    );
end
$$;

revoke all on function jobq_private.holders_among from public;

comment on function jobq_private.holders_among is
'For each of these jobs that is blocked, one that holds it up.';

-- Purpose: jobs as nodes, for show_graph(), in the order of their ids.
-- Invariant: reads only; jobs that have gone are left out. Raises: nothing.
create or replace function jobq_private.graph_node_documents(job_ids uuid[])
returns jsonb
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_build_object(
        'job_id', j.job_id,
        'name', n.name,
        'kind', j.kind,
        'queue', j.queue,
        'state', j.state,
        'attempts', j.attempts,
        'max_attempts', j.max_attempts,
        'created_at', j.created_at,
        'run_at', j.run_at,
        'started_at', j.claimed_at,
        'finished_at', j.finished_at,
        'error_code', j.last_error_code,
        'error', j.last_error,
        'batch_id', j.batch_id,
        'waits_for', case when j.state = 'blocked' then (
            select count(*) from jobq_private.edge as e where e.child = j.job_id and e.is_open
        ) else 0 end,
        'held_up_by', case when j.state = 'blocked' then g.held_up_by end
    ) order by j.job_id), '[]')
    from unnest(
        graph_node_documents.job_ids,
        jobq_private.holders_among(graph_node_documents.job_ids)
    ) as g (job_id, held_up_by)
    cross join lateral (
        select l.* from jobq.job as l where l.job_id = g.job_id and l.finished_at is null
        union all
        select a.* from jobq.job as a
        where a.job_id = g.job_id
        and a.finished_at >= jobq_private.id_time(g.job_id) - interval '1 day'
    ) as j
    left join jobq_private.node as n on n.job_id = j.job_id
$$;

revoke all on function jobq_private.graph_node_documents from public;

comment on function jobq_private.graph_node_documents is
'Jobs as nodes, for show_graph().';

-- Purpose: the jobs beyond new ones that these name in after and before: by ids, or by names
-- in the graph that they join.
-- Invariant: each must be there. A name of the new jobs goes before one of the graph.
-- Raises: 22023, JQ001.
create or replace function jobq_private.graph_others(nodes jsonb, names text[], graph_id uuid)
returns uuid[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _others uuid[];
    _given text[];
    _missing text;
    _taken text;
begin
    select n.name into _taken
    from jobq_private.node as n
    where n.graph_id = graph_others.graph_id and n.name = any(graph_others.names)
    limit 1;
    if found then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', format('name %s is in the graph already', _taken)
        );
    end if;
    with named as (
        select distinct coalesce(w.name, '') as name
        from jsonb_array_elements(graph_others.nodes) as e (node)
        cross join lateral (
            select a.name from jsonb_array_elements_text(
                coalesce(nullif(e.node -> 'after', 'null'), '[]')
            ) as a (name)
            union all
            select b.name from jsonb_array_elements_text(
                coalesce(nullif(e.node -> 'before', 'null'), '[]')
            ) as b (name)
        ) as w
        except
        select n.name from unnest(graph_others.names) as n (name)
    ),
    found as (
        select d.name, coalesce(n.job_id, case
            when d.name ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then d.name::uuid
        end) as job_id
        from named as d
        left join jobq_private.node as n
            on n.graph_id = graph_others.graph_id and n.name = d.name
    )
    select array_agg(f.job_id), array_agg(f.name) into _others, _given from found as f;
    select min(o.name) into _missing
    from unnest(_others, _given, jobq_private.ends_of(_others)) as o (job_id, name, ended_as)
    where o.job_id is null or o.ended_as = 'gone';
    if _missing is not null then
        perform jobq_private.raise_error(
            'JOB_NOT_FOUND', format('job_id %s: neither a job nor a name in the graph', _missing)
        );
    end if;
    return array(select distinct o.job_id from unnest(_others) as o (job_id));
end
$$;

revoke all on function jobq_private.graph_others from public;

comment on function jobq_private.graph_others is
'The jobs that a graph names beyond its own new ones.';

-- Purpose: add the graph of a schedule behind the job of a slot.
-- Invariant: what waits for no job of the graph waits for that one. Nothing that a new job may
-- be refused for is checked again. Raises: nothing.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, GRAPH_CYCLE, JOB_NOT_FOUND, BATCH_NOT_FOUND,
-- ILLEGAL_STATE, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID, QUEUE_FULL.
create or replace function jobq_private.hang_graph(job_id uuid, graph jsonb)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select a.job_id
    from jobq_private.add_graph(
        jsonb_build_object('jobs', (
            select jsonb_agg(case
                when coalesce(nullif(n.node -> 'after', 'null'), '[]') = '[]'
                then n.node || jsonb_build_object('after', array[hang_graph.job_id])
                else n.node
            end order by n.place)
            from jsonb_array_elements(hang_graph.graph -> 'jobs')
                with ordinality as n (node, place)
        )),
        hang_graph.job_id, true
    ) as a
$$;

revoke all on function jobq_private.hang_graph from public;

comment on function jobq_private.hang_graph is
'Adds the graph of a schedule behind the job of a slot.';

-- Purpose: lock blocked jobs that are to wait for new ones as well.
-- Invariant: in the order of ids; resolve() leaves them alone until the commit, and then sees
-- that they wait. Raises: JQ002.
create or replace function jobq_private.hold_children(job_ids uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _free uuid;
begin
    if job_ids = '{}' then
        return;
    end if;
    perform from jobq_private.job as j
    where j.job_id = any(hold_children.job_ids)
    order by j.job_id
    for no key update;
    select c.job_id into _free
    from unnest(hold_children.job_ids) as c (job_id)
    where not exists (
        select from jobq_private.job as j where j.job_id = c.job_id and j.state = 'blocked'
    )
    or exists (
        select from jobq_private.batch as b
        where c.job_id in (b.on_success, b.on_end, b.on_first_death)
    )
    limit 1;
    if found then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s is %s; only a blocked job, and none that a batch calls, can come to wait',
            _free,
            jobq_private.state_of(_free)
        ));
    end if;
end
$$;

revoke all on function jobq_private.hold_children from public;

comment on function jobq_private.hold_children is
'Locks blocked jobs that are to wait for new ones as well.';

-- Purpose: the state of a job, live or archived; null when there is none.
-- Invariant: reads only, what get_job() would find. Raises: nothing.
create or replace function jobq_private.state_of(job_id uuid)
returns text
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(
        (select j.state from jobq_private.job as j where j.job_id = state_of.job_id),
        (
            select a.state
            from (
                select jobq_private.id_time(state_of.job_id) - interval '1 day' as since offset 0
            ) as t
            join jobq_private.job_archive as a
                on a.job_id = state_of.job_id and a.finished_at >= t.since
            order by a.finished_at desc
            limit 1
        )
    )
$$;

revoke all on function jobq_private.state_of from public;

comment on function jobq_private.state_of is
'The state of a job; null when there is none.';

-- Purpose: the jobs that hold a blocked one up: at the end of open edges, and waiting for no job
-- themselves; such a one may wait for the end of a batch.
-- Invariant: reads only; looks at 1,000 jobs above it. Raises: nothing.
create or replace function jobq_private.holders(blocked uuid)
returns table (job_id uuid, state text)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    with recursive above as (
        select holders.blocked as job_id
        union
        select e.parent
        from above as a
        join jobq_private.edge as e on e.child = a.job_id and e.is_open
    )
    select h.job_id, s.state
    from (select a.job_id from above as a limit 1000) as h
    cross join lateral jobq_private.state_of(h.job_id) as s (state)
    where h.job_id <> holders.blocked
    and (
        s.state is distinct from 'blocked'
        or not exists (
            select from jobq_private.edge as e where e.child = h.job_id and e.is_open
        )
    )
$$;

revoke all on function jobq_private.holders from public;

comment on function jobq_private.holders is
'The jobs that hold a blocked one up.';

-- Purpose: whether something is left to do for a batch: it could end, or call about a death.
-- Invariant: reads only. Who does not see all queues leaves batches to somebody else, since
-- members may be in any. Raises: nothing.
create or replace function jobq_private.is_batch_due(batch_id uuid, queues text[])
returns boolean
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select is_batch_due.queues is not null or exists (
        select from jobq_private.batch as b
        where b.batch_id = is_batch_due.batch_id
        and b.ended_at is null
        and (
            (b.sealed_at is not null and not exists (
                select from jobq_private.job as j where j.batch_id = b.batch_id
            ))
            or (
                exists (
                    select from jobq_private.job as c
                    where c.job_id = b.on_first_death and c.state = 'blocked'
                )
                and exists (
                    select from jobq_private.job_archive as a
                    where a.batch_id = b.batch_id and a.state = 'dead'
                )
            )
        )
    )
$$;

revoke all on function jobq_private.is_batch_due from public;

comment on function jobq_private.is_batch_due is
'Whether something is left to do for a batch.';

-- Purpose: the queues whose jobs whoever has logged in may release; null for all.
-- Invariant: while queue grants are enforced, who holds some queues sees only their jobs, and
-- must not take what it cannot see for gone. Raises: nothing.
create or replace function jobq_private.worked_queues()
returns text[]
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select case
        when row_security_active('jobq_private.job') and not coalesce(h.worked && '{*}', false)
        then coalesce(h.worked, '{}')
    end
    from jobq_private.held_queue as h
$$;

revoke all on function jobq_private.worked_queues from public;

comment on function jobq_private.worked_queues is
'The queues whose jobs whoever has logged in may release; null for all.';

-- Purpose: whether a finished job that is past retention is to be kept: a job that waited for
-- it is live, or not that old itself; or its batch has not ended.
-- Invariant: reads only; asks nothing of jobs for which no other waits. Who does not see all queues
-- may not see who needs it, and leaves it to others. Raises: nothing.
create or replace function jobq_private.is_needed(job_id uuid, is_awaited boolean, batch_id uuid, oldest timestamptz)
returns boolean
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select (is_needed.is_awaited or is_needed.batch_id is not null) and (
        jobq_private.worked_queues() is not null
        or (
            is_needed.is_awaited and exists (
                select from jobq_private.edge as e
                where e.parent = is_needed.job_id
                and (
                    exists (select from jobq_private.job as j where j.job_id = e.child)
                    or exists (
                        select from jobq_private.job_archive as a
                        where a.job_id = e.child and a.finished_at >= is_needed.oldest
                    )
                )
            )
        )
        or exists (
            select from jobq_private.batch as b
            where b.batch_id = is_needed.batch_id and b.ended_at is null
        )
    )
$$;

revoke all on function jobq_private.is_needed from public;

comment on function jobq_private.is_needed is
'Whether a finished job that is past retention is to be kept for others.';

-- Purpose: whether new jobs stand between two that are blocked already, so that others who do the
-- same could close a ring with them; if so, wait until these have committed.
-- Invariant: one at a time does this, until its commit; the caller then looks at the arrows anew.
-- A transaction with one snapshot would not see what they have added. Raises: 22023.
create or replace function jobq_private.join_alone(
    arrows jobq_private.arrow[], others uuid[], size integer
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (select from unnest(arrows) as a where a.child > size)
        or not exists (
            select from unnest(arrows) as a
            join jobq_private.job as j on j.job_id = others[a.parent - size]
            where a.parent > size and a.child <= size and j.state = 'blocked'
        )
    then
        return false;
    elsif current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'jobs come between two that are blocked only at the isolation level read committed'
        );
    end if;
    perform pg_advisory_xact_lock(jobq_private.lock_class('joining'), 0);
    return true;
end
$$;

revoke all on function jobq_private.join_alone from public;

comment on function jobq_private.join_alone is
'Whether new jobs stand between two that are blocked; then nobody else adds such ones meanwhile.';

-- Purpose: note that jobs have ended for which others wait, or which belong to batches.
-- Invariant: takes no lock that another could wait for, so that the caller's transaction may
-- last. claim() resolves what its own transaction has left (jobq.looks); the workers that
-- are woken, or maintain(), the rest. Raises: nothing.
create or replace function jobq_private.leave_looks(endings jobq_private.ending[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into jobq_private.look (about, id)
    select 'parent', e.job_id from unnest(leave_looks.endings) as e where e.is_awaited
    union all
    select distinct 'batch', e.batch_id
    from unnest(leave_looks.endings) as e
    where e.batch_id is not null;
    perform set_config('jobq.looks', 'on', true);
    perform jobq_private.wake(array(
        select distinct e.queue from unnest(leave_looks.endings) as e
    ));
end
$$;

revoke all on function jobq_private.leave_looks from public;

comment on function jobq_private.leave_looks is
'Notes that jobs have ended for which others wait, or which belong to batches.';

-- Purpose: the jobs of a graph as new jobs, without what they wait for.
-- Invariant: reads nothing. Raises: 22004, 22023.
create or replace function jobq_private.node_jobs(nodes jsonb)
returns jobq_private.new_job[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _jobs constant jobq_private.new_job[] := jobq_private.read_jobs(
        (
            select jsonb_agg(n.node - '{name,after,before}'::text[] order by n.place)
            from jsonb_array_elements(node_jobs.nodes) with ordinality as n (node, place)
        ),
        '{kind,payload,queue,run_at,priority,max_attempts,timeout,metadata,concurrency_key,after_failure,batch_id}'
    );
begin
    perform jobq_private.check_after_failure(_jobs);
    return _jobs;
end
$$;

revoke all on function jobq_private.node_jobs from public;

comment on function jobq_private.node_jobs is
'The jobs of a graph as new jobs.';

-- Purpose: forget what jobs that have gone waited for, and batches past retention.
-- Invariant: the caller sees all queues: what it does not see counts as gone. A bounded number of
-- rows at a call. Returns how many went. Raises: nothing.
create or replace function jobq_private.prune_edges(before timestamptz, max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _gone bigint;
    _rows bigint;
begin
    delete from jobq_private.edge as e
    where e.child in (
        select distinct o.child
        from jobq_private.edge as o
        where o.child < jobq_private.id_floor(prune_edges.before)
        and not exists (select from jobq_private.job as j where j.job_id = o.child)
        and not exists (select from jobq_private.job_archive as a where a.job_id = o.child)
        order by o.child
        limit prune_edges.max_rows
    );
    get diagnostics _gone = row_count;
    _gone := _gone + jobq_private.prune_nodes(prune_edges.before, prune_edges.max_rows);
    delete from jobq_private.batch as b
    where b.batch_id in (
        select o.batch_id
        from jobq_private.batch as o
        where o.opened_at < prune_edges.before and o.ended_at < prune_edges.before
        limit prune_edges.max_rows
    );
    get diagnostics _rows = row_count;
    return _gone + _rows;
end
$$;

revoke all on function jobq_private.prune_edges from public;

comment on function jobq_private.prune_edges is
'Forgets what jobs that have gone waited for, and batches past retention.';

-- Purpose: forget the names in graphs of jobs that have gone.
-- Invariant: a bounded number of rows at a call. Returns how many went. Raises: nothing.
create or replace function jobq_private.prune_nodes(before timestamptz, max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _gone bigint;
begin
    delete from jobq_private.node as n
    where n.job_id in (
        select o.job_id
        from jobq_private.node as o
        where o.job_id < jobq_private.id_floor(prune_nodes.before)
        and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
        and not exists (select from jobq_private.job_archive as a where a.job_id = o.job_id)
        order by o.job_id
        limit prune_nodes.max_rows
    );
    get diagnostics _gone = row_count;
    return _gone;
end
$$;

revoke all on function jobq_private.prune_nodes from public;

comment on function jobq_private.prune_nodes is
'Forgets the names in graphs of jobs that have gone.';

-- Purpose: forget the steps and waits of jobs that have gone, and events past retention;
-- release those that waited for what a transaction with one snapshot has emitted.
-- Invariant: a bounded number of rows at a call. An event for which a job waits stays, and
-- so do the steps of a job that can still be redriven. Who does not see all queues leaves what
-- belongs to none to others. Returns how many rows went.
-- Raises: nothing.
create or replace function jobq_private.prune_workflows(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _before constant timestamptz := now() - (select g.retention from jobq_private.setting as g);
    _gone bigint;
    _rows bigint;
    _late jobq_private.late_event;
    _queues constant text[] := jobq_private.worked_queues();
begin
    for _late in
        delete from jobq_private.late_event as l
        where l.late_event_id in (
            select e.late_event_id
            from jobq_private.late_event as e
            where _queues is null
            or exists (select from jobq_private.job as j where j.job_id = e.job_id)
            order by e.late_event_id
            limit prune_workflows.max_rows
            for update skip locked
        )
        returning l.*
    loop
        if exists (
            select from jobq_private.event as e
            where e.event = _late.event and e.job_id in (_late.job_id, _all)
        ) then
            perform jobq_private.release_waiters(_late.event, _late.job_id);
        end if;
    end loop;

    delete from jobq_private.event as e
    where (e.event, e.job_id) in (
        select o.event, o.job_id
        from jobq_private.event as o
        where o.emitted_at < _before
        and not exists (
            select from jobq_private.waiter as w
            where w.event = o.event and o.job_id in (w.job_id, _all)
        )
        order by o.emitted_at
        limit prune_workflows.max_rows
    );
    get diagnostics _gone = row_count;

    delete from jobq_private.waiter as w
    where (w.job_id, w.event) in (
        select o.job_id, o.event
        from jobq_private.waiter as o
        where o.since < now() - interval '1 day'
        and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
        order by o.since
        limit prune_workflows.max_rows
    );
    get diagnostics _rows = row_count;
    _gone := _gone + _rows;

    delete from jobq_private.step as s
    where s.job_id in (
        select distinct o.job_id
        from jobq_private.step as o
        where o.job_id < jobq_private.id_floor(_before)
        and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
        and not exists (select from jobq_private.job_archive as a where a.job_id = o.job_id)
        order by o.job_id
        limit prune_workflows.max_rows
    );
    get diagnostics _rows = row_count;
    _gone := _gone + _rows;
    if _queues is null then
        _gone := _gone + jobq_private.prune_edges(_before, prune_workflows.max_rows);
    end if;
    return _gone;
end
$$;

revoke all on function jobq_private.prune_workflows from public;

comment on function jobq_private.prune_workflows is
'Forgets the steps and waits of jobs that have gone, and events past their retention.';

-- Purpose: queue those of these blocked jobs that wait for nothing any more.
-- Invariant: the caller has their rows; a new snapshot shows the edges that others have
-- closed. They are due as of now, or at the time that they were given. Returns how many.
-- Raises: nothing.
create or replace function jobq_private.release_children(held uuid[])
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _released uuid[];
    _queues text[];
begin
    with released as (
        update jobq_private.job as j
        set state = 'queued', run_at = greatest(j.run_at, now())
        where j.job_id = any(release_children.held)
        and j.state = 'blocked'
        and not exists (
            select from jobq_private.edge as e where e.child = j.job_id and e.is_open
        )
        returning j.job_id, j.queue
    )
    select array_agg(r.job_id), array_agg(distinct r.queue) into _released, _queues
    from released as r;
    if _released is null then
        return 0;
    end if;
    perform jobq_private.call_lanes(_released);
    perform jobq_private.wake(_queues);
    return cardinality(_released);
end
$$;

revoke all on function jobq_private.release_children from public;

comment on function jobq_private.release_children is
'Queues blocked jobs that wait for nothing any more.';

-- Purpose: make the jobs that wait for an event due now, and wake their queues.
-- Invariant: rows are locked in the order of their ids. Those that run, retry or have ended
-- are left alone: they look for the event when they come to it. The rows of waiters stay
-- until the jobs have looked. Returns how many jobs became due. Raises: nothing.
create or replace function jobq_private.release_waiters(event text, job_id uuid)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _waiting constant uuid[] := array(
        select w.job_id
        from jobq_private.waiter as w
        where w.event = release_waiters.event
        and release_waiters.job_id in (_all, w.job_id)
        order by w.job_id
    );
    _queues text[];
    _released bigint;
    _has_lanes boolean;
begin
    if _waiting = '{}' then
        return 0;
    end if;
    with held as materialized (
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_waiting) and j.state = 'queued' and j.run_at > clock_timestamp()
        order by j.job_id
        for no key update of j
    ),
    released as (
        update jobq_private.job as j
        set run_at = clock_timestamp()
        from held as h
        where j.job_id = any(_waiting) and j.job_id = h.job_id
        returning j.queue, j.lane_id
    )
    select count(*), array_agg(distinct r.queue), bool_or(r.lane_id is not null)
    into _released, _queues, _has_lanes
    from released as r;
    if _has_lanes then
        perform jobq_private.call_lanes(_waiting);
    end if;
    if _released > 0 then
        perform jobq_private.wake(_queues);
    end if;
    return _released;
end
$$;

revoke all on function jobq_private.release_waiters from public;

comment on function jobq_private.release_waiters is
'Makes the jobs that wait for an event due now.';

-- Purpose: do what follows from the ends of jobs: release their children or cancel them, end
-- batches.
-- Invariant: waits for no lock. What is locked, or not to be seen, is left with its look, at
-- which somebody looks again after 10 ms, later after up to a second. A look is taken away
-- only after a new snapshot has shown that nothing is left to do, by who has the rows of
-- children and batches; so whoever is killed strands nothing, and what two do at once is done
-- once. A repeatable snapshot is too old for that. Returns how many jobs were released or
-- cancelled. Raises: nothing.
create or replace function jobq_private.resolve(max_looks integer default 1000)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
declare
    _queues constant text[] := jobq_private.worked_queues();
    _looks tid[];
    _parents uuid[];
    _children uuid[];
    _batches uuid[];
    _left uuid[] := array[]::uuid[];
    _moved bigint := 0;
begin
    perform set_config('jobq.looks', '', true);
    if current_setting('transaction_isolation') <> 'read committed' then
        return 0;
    end if;
    for _round in 1 .. 10 loop
        select
            array_agg(l.ctid),
            coalesce(array_agg(l.id) filter (where l.about = 'parent'), '{}'),
            coalesce(array_agg(l.id) filter (where l.about = 'child'), '{}'),
            array_agg(distinct l.id) filter (where l.about = 'batch')
        into _looks, _parents, _children, _batches
        from (
            select k.ctid, k.about, k.id
            from jobq_private.look as k
            where k.look_at <= clock_timestamp()
            order by k.look_id
            limit resolve.max_looks
            for update skip locked
        ) as l;
        exit when _looks is null;
        if _children <> '{}' then
            perform jobq_private.await_parents(_children, _queues);
        end if;
        if _children <> '{}' or _parents <> '{}' then
            _moved := _moved + jobq_private.settle_edges(_parents, _children, _queues);
        end if;
        if _batches is not null then
            select _moved + s.moved, s.left_alone into _moved, _left
            from jobq_private.settle_batches(_batches) as s;
        end if;
        perform jobq_private.end_looks(_looks, _parents, _children, _left, _queues);
    end loop;
    return _moved;
end
$$;

revoke all on function jobq_private.resolve from public;

comment on function jobq_private.resolve is
'Releases or cancels the children of jobs that have ended, and ends batches.';

-- Purpose: call back about the first death in these batches, and about their ends.
-- Invariant: whoever has the batch's row and its lock, which keeps new members out, looks with
-- a new snapshot whether a member lives. Returns how many jobs moved, and the batches that
-- somebody else holds, who may not see all ends. Raises: nothing.
create or replace function jobq_private.settle_batches(
    batch_ids uuid[], out moved bigint, out left_alone uuid[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _batching constant integer := jobq_private.lock_class('batching');
    _batch_id uuid;
    _batch jobq_private.batch;
    _outcome text;
begin
    moved := 0;
    left_alone := '{}';
    foreach _batch_id in array settle_batches.batch_ids loop
        select b.* into _batch
        from jobq_private.batch as b
        where b.batch_id = _batch_id and b.ended_at is null
        for update skip locked;
        if not found then
            left_alone := left_alone || array(
                select b.batch_id
                from jobq_private.batch as b
                where b.batch_id = _batch_id and b.ended_at is null
            );
            continue;
        end if;
        if _batch.on_first_death is not null and exists (
            select from jobq_private.job_archive as a
            where a.batch_id = _batch_id and a.state = 'dead'
        ) then
            moved := moved + jobq_private.call_back(_batch.on_first_death, 'queued');
        end if;
        continue when _batch.sealed_at is null
            or not pg_try_advisory_xact_lock(_batching, hashtext(_batch_id::text));
        continue when exists (
            select from jobq_private.job as j where j.batch_id = _batch_id
        );
        _outcome := case
            when exists (
                select from jobq_private.job_archive as a
                where a.batch_id = _batch_id and a.state in ('dead', 'cancelled')
            )
            then 'cancelled' else 'queued'
        end;
        moved := moved + jobq_private.call_back(_batch.on_success, _outcome)
            + jobq_private.call_back(_batch.on_end, 'queued')
            + jobq_private.call_back(_batch.on_first_death, 'cancelled');
        update jobq_private.batch as b
        set ended_at = clock_timestamp()
        where b.batch_id = _batch_id
        and not exists (
            select from jobq_private.job as c
            where c.job_id in (b.on_success, b.on_end, b.on_first_death)
            and c.state = 'blocked'
        );
    end loop;
end
$$;

revoke all on function jobq_private.settle_batches from public;

comment on function jobq_private.settle_batches is
'Calls back about the first death in batches, and about their ends.';

-- Purpose: close the edges of parents that have ended, then release the children that have
-- none left, and cancel those that can never run.
-- Invariant: whoever has a child's row locked, and nobody else, closes its edges, as the parents
-- are seen since, and then looks, with a new snapshot, whether any is left. So the last of two
-- parents releases it, and one of them only. Bounded: 5,000 edges at a call. Returns how many
-- jobs moved. Raises: nothing.
create or replace function jobq_private.settle_edges(parents uuid[], children uuid[], queues text[])
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _touched uuid[];
    _over uuid[];
    _held uuid[];
    _moved bigint := 0;
begin
    select t.over_children, t.over_parents into _touched, _over
    from jobq_private.edges_to_settle(
        settle_edges.parents, settle_edges.children, settle_edges.queues
    ) as t;
    _held := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_touched || settle_edges.children)
        and j.state = 'blocked'
        and (settle_edges.queues is null or j.queue = any(settle_edges.queues))
        order by j.job_id
        for update skip locked
    );
    if _over is not null then
        _moved := jobq_private.close_edges(_touched, _over, _held, settle_edges.queues);
    end if;
    return _moved + jobq_private.release_children(_held);
end
$$;

revoke all on function jobq_private.settle_edges from public;

comment on function jobq_private.settle_edges is
'Closes the edges of parents that have ended, and releases or cancels their children.';

-- Purpose: how a wait of a job for an event has ended: what is recorded, what has come, or
-- that its time is over; null while it goes on.
-- Invariant: what is found is recorded as a step, so that every later attempt gets the
-- same. A signal for the job goes before an event of that name. Raises: nothing.
create or replace function jobq_private.settle_wait(job_id uuid, attempt integer, event text)
returns jsonb
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _end jsonb;
begin
    select s.value into _end
    from jobq_private.step as s
    where s.job_id = settle_wait.job_id and s.name = 'event:' || settle_wait.event;
    if found then
        return _end;
    end if;

    select jsonb_build_object('outcome', 'arrived', 'payload', e.payload) into _end
    from jobq_private.event as e
    where e.event = settle_wait.event and e.job_id in (settle_wait.job_id, _all)
    order by e.job_id = _all
    limit 1;
    if not found then
        select jsonb_build_object('outcome', 'timed_out', 'payload', null) into _end
        from jobq_private.waiter as w
        where w.job_id = settle_wait.job_id
        and w.event = settle_wait.event
        and w.deadline <= clock_timestamp();
    end if;
    if _end is not null then
        insert into jobq_private.step (job_id, name, value, attempt)
        values (settle_wait.job_id, 'event:' || settle_wait.event, _end, settle_wait.attempt);
        delete from jobq_private.waiter as w
        where w.job_id = settle_wait.job_id and w.event = settle_wait.event;
    end if;
    return _end;
end
$$;

revoke all on function jobq_private.settle_wait from public;

comment on function jobq_private.settle_wait is
'How a wait of a job for an event has ended; null while it goes on.';

-- Purpose: keep an event, and release those that wait for it.
-- Invariant: the first one stays; true for that one alone. The emitter holds E (shared)
-- until it commits, before it looks for waiters; a waiter stands in the table before it
-- tries E (exclusively, wait_for()). So one of the two always sees the other. A transaction
-- with one snapshot cannot see who began to wait since: it leaves a row for maintain().
-- Raises: nothing.
create or replace function jobq_private.store_event(event text, job_id uuid, payload jsonb)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _emitting constant integer := jobq_private.lock_class('emitting');
begin
    perform pg_advisory_xact_lock_shared(_emitting, hashtext(store_event.event) & 1023);
    insert into jobq_private.event (event, job_id, payload)
    values (store_event.event, store_event.job_id, store_event.payload)
    on conflict on constraint event_pkey do nothing;
    if not found then
        return false;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        insert into jobq_private.late_event (event, job_id)
        values (store_event.event, store_event.job_id);
    end if;
    perform jobq_private.release_waiters(store_event.event, store_event.job_id);
    return true;
end
$$;

revoke all on function jobq_private.store_event from public;

comment on function jobq_private.store_event is
'Keeps an event unless it is known already, and releases those that wait for it.';

-- Purpose: store the jobs of a graph, with what they wait for.
-- Invariant: arrows were checked. A look is left for those that wait for others than these,
-- as follow() does. Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010.
create or replace function jobq_private.store_nodes(
    nodes jsonb, names text[], ids uuid[], others uuid[], arrows jobq_private.arrow[],
    graph_id uuid, is_checked boolean
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _size constant integer := cardinality(ids);
    _all constant uuid[] := ids || others;
    _jobs jobq_private.new_job[];
    _named integer;
begin
    _jobs := jobq_private.node_jobs(nodes);
    if not is_checked then
        perform jobq_private.check_new_jobs(_jobs);
    end if;
    perform jobq_private.store_jobs(
        array(
            select jobq_private.as_node(
                j, case when w.child is not null then store_nodes.graph_id end,
                p.parent is not null
            )
            from unnest(_jobs) as j
            left join (
                select distinct a.child from unnest(store_nodes.arrows) as a
            ) as w on w.child = j.ordinal
            left join (
                select distinct a.parent from unnest(store_nodes.arrows) as a
            ) as p on p.parent = j.ordinal
            order by j.ordinal
        ),
        ids, is_checked
    );
    insert into jobq_private.node (job_id, graph_id, name)
    select n.job_id, store_nodes.graph_id, n.name
    from unnest(ids, names) as n (job_id, name)
    order by n.name
    on conflict on constraint node_name_key do nothing;
    get diagnostics _named = row_count;
    if _named < _size then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'a name is in the graph already: another job has added it just now'
        );
    end if;
    insert into jobq_private.edge (child, parent, after_failure)
    select
        _all[a.child], _all[a.parent],
        coalesce(
            j.after_failure,
            case when a.child > _size then (
                select min(e.after_failure)
                from jobq_private.edge as e
                where e.child = _all[a.child]
            ) end,
            'cancel'
        )
    from unnest(store_nodes.arrows) as a
    left join unnest(_jobs) as j on j.ordinal = a.child;
    insert into jobq_private.look (about, id)
    select distinct 'child', _all[a.child]
    from unnest(store_nodes.arrows) as a
    where a.parent > _size;
end
$$;

revoke all on function jobq_private.store_nodes from public;

comment on function jobq_private.store_nodes is
'Stores the jobs of a graph, with what they wait for.';

-- Purpose: the jobs that hang together with one: all, or those below it, itself included.
-- Invariant: reads only; the nearest ones, at most max_jobs. Raises: nothing.
create or replace function jobq_private.tree(
    job_id uuid, direction text, max_jobs integer default 100000
)
returns setof uuid
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    with recursive found as (
        select tree.job_id
        union
        select e.job_id
        from found as f
        cross join lateral (
            select d.child as job_id from jobq_private.edge as d where d.parent = f.job_id
            union all
            select u.parent from jobq_private.edge as u
            where u.child = f.job_id and tree.direction = 'all'
        ) as e
    )
    select f.job_id from found as f limit tree.max_jobs
$$;

revoke all on function jobq_private.tree from public;

comment on function jobq_private.tree is
'The jobs that hang together with one.';

-- Purpose: those of these children that could be released or cancelled now, or wait for a job
-- whose end would leave no look.
-- Invariant: reads only. queues are those whose jobs the caller sees; null means all. What it
-- does not see is left to somebody else. Raises: nothing.
create or replace function jobq_private.unsettled_children(children uuid[], queues text[])
returns uuid[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_hashjoin = off
as $$
declare
    _below uuid[];
    _above uuid[];
    _failures text[];
begin
    select array_agg(e.child), array_agg(e.parent), array_agg(e.after_failure)
    into _below, _above, _failures
    from jobq_private.edge as e
    left join jobq_private.job as p on p.job_id = e.parent
    where e.child = any(unsettled_children.children) and e.is_open and p.is_awaited is not true;
    return array(
        select c.job_id
        from jobq_private.job as c
        where c.job_id = any(unsettled_children.children)
        and c.state = 'blocked'
        and (
            not exists (
                select from jobq_private.edge as o where o.child = c.job_id and o.is_open
            )
            or c.job_id in (
                select b.child
                from unnest(_below, _failures, jobq_private.ends_of(_above))
                    as b (child, after_failure, ended_as)
                where b.ended_as is null
                or jobq_private.follows(b.ended_as, b.after_failure) is not null
            )
        )
        union all
        select i.job_id
        from unnest(unsettled_children.children) as i (job_id)
        where unsettled_children.queues is not null
        and jobq_private.state_of(i.job_id) is null
    );
end
$$;

revoke all on function jobq_private.unsettled_children from public;

comment on function jobq_private.unsettled_children is
'Children that have waited long enough, or of which a parent is not marked.';

-- Purpose: those of these parents behind whose end something is left to do.
-- Invariant: reads only. queues are those whose jobs the caller sees; null means all. What it
-- does not see whole is left to somebody else. Raises: nothing.
create or replace function jobq_private.unsettled_parents(parents uuid[], queues text[])
returns uuid[]
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_hashjoin = off
as $$
    select array(
        select p.parent
        from unnest(unsettled_parents.parents, jobq_private.ends_of(unsettled_parents.parents))
            as p (parent, ended_as)
        cross join lateral (
            select e.parent
            from jobq_private.edge as e
            left join jobq_private.job as c on c.job_id = e.child
            where e.parent = p.parent
            and e.is_open
            and (
                p.ended_as = 'succeeded'
                or (
                    c.state = 'blocked'
                    and jobq_private.follows(p.ended_as, e.after_failure) is not null
                )
                or (
                    unsettled_parents.queues is not null
                    and coalesce(c.queue <> all(unsettled_parents.queues), true)
                )
            )
            limit 1
        ) as o
        where p.ended_as is not null
    )
$$;

revoke all on function jobq_private.unsettled_parents from public;

comment on function jobq_private.unsettled_parents is
'Parents behind whose end something is left to do.';

-- Purpose: how far a batch is.
-- Invariant: counts rows; members of which the retention has ended do not count.
-- Raises: 22004, JQ001.
-- Argument batch_id: the batch
-- Column opened_at: when it was made
-- Column sealed_at: when it had all its members; null before
-- Column ended_at: when no member was live any more, and its jobs were called; null before
-- Column members: how many jobs belong to it
-- Column blocked: how many wait for other jobs
-- Column queued: how many wait to run
-- Column running: how many run
-- Column retrying: how many wait for another attempt
-- Column succeeded: how many have succeeded
-- Column dead: how many have failed for good
-- Column cancelled: how many were cancelled
-- Column on_success: the job that runs when all have succeeded; null for none
-- Column on_end: the job that runs when all have ended; null for none
-- Column on_first_death: the job that runs when the first is dead; null for none
-- Example: select members, succeeded, ended_at from jobq.batch_status(:'batch');
create or replace function jobq.batch_status(
    batch_id uuid,
    out opened_at timestamptz,
    out sealed_at timestamptz,
    out ended_at timestamptz,
    out members bigint,
    out blocked bigint,
    out queued bigint,
    out running bigint,
    out retrying bigint,
    out succeeded bigint,
    out dead bigint,
    out cancelled bigint,
    out on_success uuid,
    out on_end uuid,
    out on_first_death uuid
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _batch jobq_private.batch := jobq_private.find_batch(batch_status.batch_id);
begin
    opened_at := _batch.opened_at;
    sealed_at := _batch.sealed_at;
    ended_at := _batch.ended_at;
    on_success := _batch.on_success;
    on_end := _batch.on_end;
    on_first_death := _batch.on_first_death;
    select
        count(*), count(*) filter (where m.state = 'blocked'),
        count(*) filter (where m.state = 'queued'),
        count(*) filter (where m.state = 'running'),
        count(*) filter (where m.state = 'retrying'),
        count(*) filter (where m.state = 'succeeded'),
        count(*) filter (where m.state = 'dead'),
        count(*) filter (where m.state = 'cancelled')
    into members, blocked, queued, running, retrying, succeeded, dead, cancelled
    from (
        select j.state from jobq_private.job as j where j.batch_id = _batch.batch_id
        union all
        select a.state from jobq_private.job_archive as a where a.batch_id = _batch.batch_id
    ) as m;
end
$$;

revoke all on function jobq.batch_status from public;
grant execute on function jobq.batch_status
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.batch_status is
'Returns how far a batch is: its members by state, and whether it is sealed and has ended.';

-- Purpose: cancel the members of a batch: those that wait at once, those that run by asking
-- their workers; and seal it.
-- Invariant: at most max_jobs waiting ones at a call, the oldest first, so call again while
-- some remain. What somebody holds at this moment remains too.
-- Raises: 22004, 22023, JQ001.
-- Argument batch_id: the batch
-- Argument max_jobs: at most so many, 1 to 100000.
-- Argument reason: why; kept with each job, at most 512 characters.
-- Column cancelled: how many were cancelled
-- Column requested: how many run, and were asked to stop
-- Column remaining: how many are left, neither cancelled nor asked
-- Example: select * from jobq.cancel_batch(:'batch', 'wrong list');
create or replace function jobq.cancel_batch(
    batch_id uuid,
    reason text default null,
    max_jobs integer default 10000,
    out cancelled bigint,
    out requested bigint,
    out remaining bigint
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _held uuid[];
begin
    perform jobq_private.find_batch(cancel_batch.batch_id);
    if cancel_batch.max_jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs');
    elsif cancel_batch.max_jobs not between 1 and 100000
        or length(cancel_batch.reason) > 512
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'max_jobs must be from 1 to 100000, and reason have at most 512 characters'
        );
    end if;
    perform jobq.seal_batch(cancel_batch.batch_id);
    _held := array(
        select j.job_id
        from jobq_private.job as j
        where j.batch_id = cancel_batch.batch_id and j.cancel_requested_at is null
        order by j.job_id
        limit cancel_batch.max_jobs
        for update skip locked
    );
    select
        count(*) filter (where c.outcome = 'cancelled'),
        count(*) filter (where c.outcome = 'cancel_requested')
    into cancelled, requested
    from jobq_private.cancel_jobs(_held, cancel_batch.reason) as c;
    select count(*) into remaining
    from jobq_private.job as j
    where j.batch_id = cancel_batch.batch_id and j.cancel_requested_at is null;
end
$$;

revoke all on function jobq.cancel_batch from public;
grant execute on function jobq.cancel_batch
to jobq_producer, jobq_operator;

comment on function jobq.cancel_batch is
'Cancels the members of a batch, and says how many it has cancelled, has asked to stop, and how many remain.';

-- Purpose: cancel a job with all that hangs together with it: those that wait at once, those
-- that run by asking their workers.
-- Invariant: each as by cancel(), in one transaction; all rows are locked first, in the order of
-- ids, so that none of them ends meanwhile. What has ended stays as it is. Raises: 22004, 22023, JQ001.
-- Argument job_id: any job of the tree
-- Argument reason: why; kept with each job, at most 512 characters.
-- Argument scope: all (every job that is connected with it) or downstream (it, and what waits
-- for it)
-- Column cancelled_id: the id of a job that was live
-- Column outcome: cancelled or cancel_requested.
-- Example: select * from jobq.cancel_tree(:'waiting', 'ordered twice');
create or replace function jobq.cancel_tree(
    job_id uuid, reason text default null, scope text default 'all'
)
returns table (cancelled_id uuid, outcome text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _held uuid[];
begin
    perform jobq.get_job(cancel_tree.job_id);
    if cancel_tree.scope is null or cancel_tree.scope not in ('all', 'downstream') then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'scope must be all or downstream');
    elsif length(cancel_tree.reason) > 512 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'reason must have at most 512 characters'
        );
    end if;
    _held := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id in (
            select d.job_id
            from jobq_private.tree(
                cancel_tree.job_id, case cancel_tree.scope when 'all' then 'all' else 'down' end
            ) as d (job_id)
        )
        order by j.job_id
        for update
    );
    return query
    select c.job_id, c.outcome from jobq_private.cancel_jobs(_held, cancel_tree.reason) as c;
end
$$;

revoke all on function jobq.cancel_tree from public;
grant execute on function jobq.cancel_tree
to jobq_producer, jobq_operator;

comment on function jobq.cancel_tree is
'Cancels a job with all that hangs together with it, and says which jobs.';

-- Purpose: say that something has happened, for all jobs that wait for it or will.
-- Invariant: joins the caller's transaction, and is undone with it. The first emit of an
-- event stays: true for that one, false for those that follow. An event is kept as long as
-- finished jobs are, and longer while a job waits for it.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Argument payload: what comes with it, for those that wait: any JSON up to max_payload_bytes
-- Returns: true for the first emit of the event
-- Example: select jobq.emit('payment:42', '{"euro": 5}');
create or replace function jobq.emit(event text, payload jsonb default 'null')
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_event(emit.event, emit.payload);
    return jobq_private.store_event(
        emit.event, '00000000-0000-0000-0000-000000000000', emit.payload
    );
end
$$;

revoke all on function jobq.emit from public;
grant execute on function jobq.emit to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.emit is
'Says that an event has happened, for all jobs that wait for it or will; true for the first that says so.';

-- Purpose: add jobs that wait for each other, given by names, with one call.
-- Invariant: all or none. What waits is blocked; arrows that lead round are refused. Jobs that
-- join a running graph may hold up others of it that are blocked yet: their rows are locked
-- until the commit, so that none of them is released meanwhile.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Argument graph: a JSON object with jobs, an array of 1 to 100000 objects. Each has a name, 1
-- to 256 characters, the members of enqueue_many() but for keys, after: an array of names in
-- the graph, or of ids of other jobs, and before: an array of names or ids of blocked jobs of
-- the graph that runs already.
-- Argument graph_of: a live job whose graph these jobs join, as the one that its own handler
-- runs; null means a graph of their own.
-- Column name: the name of the job in the graph
-- Example: select * from jobq.enqueue_graph('{"jobs": [{"name": "a", "kind": "fetch"},
--     {"name": "b", "kind": "resize", "after": ["a"]}, {"name": "c", "kind": "report", "after": ["b"]}]}');
create or replace function jobq.enqueue_graph(graph jsonb, graph_of uuid default null)
returns table (name text, job_id uuid)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select a.name, a.job_id
    from jobq_private.add_graph(enqueue_graph.graph, enqueue_graph.graph_of, false) as a;
end
$$;

revoke all on function jobq.enqueue_graph from public;
grant execute on function jobq.enqueue_graph
to jobq_producer, jobq_worker;

comment on function jobq.enqueue_graph is
'Adds jobs that wait for each other, all or none, and returns their names and ids.';

-- Purpose: what the jobs have come to that a job waited for, or waits for.
-- Invariant: in the order of their ids; a job that finished jobs depend on is kept as long as
-- they are. Raises: 22004, JQ001.
-- Column parent_id: the job that was waited for
-- Column name: its name in the graph; null when it is in none
-- Column kind: its kind; null when it is gone
-- Column state: the state it is in; gone when there is no trace of it, as of one that was deleted
-- Column result: what it returned; null unless it has succeeded
-- Column after_failure: what follows for the job that waits when this one is dead or cancelled
-- Example: select parent_id, result from jobq.list_inputs(:'running');
create or replace function jobq.list_inputs(job_id uuid)
returns table (parent_id uuid, name text, kind text, state text, result jsonb, after_failure text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform jobq.get_job(list_inputs.job_id);
    return query
    select e.parent, n.name, p.kind, coalesce(p.state, 'gone'), p.result, e.after_failure
    from jobq_private.edge as e
    left join lateral (
        select j.job_id, j.kind, j.state, j.result
        from jobq.job as j
        where j.job_id = e.parent and j.finished_at is null
        union all
        select j.job_id, j.kind, j.state, j.result
        from jobq.job as j
        where j.job_id = e.parent
        and j.finished_at >= jobq_private.id_time(e.parent) - interval '1 day'
    ) as p on true
    left join jobq_private.node as n on n.job_id = e.parent
    where e.child = list_inputs.job_id
    order by e.parent;
end
$$;

revoke all on function jobq.list_inputs from public;
grant execute on function jobq.list_inputs
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_inputs is
'Returns what the jobs have come to that a job waits for, or waited for.';

-- Purpose: what the steps of a job have come to, in their order.
-- Invariant: what wait_for() has recorded stands among them, its name beginning with
-- event:. Raises: 22004, JQ001.
-- Column name: the step's name
-- Column value: what the step has come to
-- Column attempt: the attempt that recorded it
-- Column saved_at: when
-- Example: select * from jobq.list_steps(:'running');
create or replace function jobq.list_steps(job_id uuid)
returns table (name text, value jsonb, attempt integer, saved_at timestamptz)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform jobq.get_job(list_steps.job_id);
    return query
    select s.name, s.value, s.attempt, s.saved_at
    from jobq_private.step as s
    where s.job_id = list_steps.job_id
    order by s.saved_at, s.name;
end
$$;

revoke all on function jobq.list_steps from public;
grant execute on function jobq.list_steps to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_steps is
'Returns what the steps of a job have come to, in their order.';

-- Purpose: make a batch, to which jobs are then added, and the jobs that are to run at its end.
-- Invariant: it ends once it is sealed and no member is live. The jobs wait as blocked, and
-- find the batch in their metadata as batch_id. No key may be theirs, for they are new.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Argument on_success: a job as enqueue_many() takes it, to run when all members have
-- succeeded; cancelled when one has not.
-- Argument on_end: a job to run when all members have ended, however.
-- Argument on_first_death: a job to run as soon as a member is dead; cancelled when none is.
-- Returns: the batch, for enqueue(batch_id => …).
-- Example: select jobq.open_batch(on_success => '{"kind": "report"}', on_first_death => '{"kind": "alert"}');
create or replace function jobq.open_batch(
    on_success jsonb default null,
    on_end jsonb default null,
    on_first_death jsonb default null
)
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _batch_id constant uuid := jobq_private.new_id();
    _given constant jsonb[] := array[
        open_batch.on_success, open_batch.on_end, open_batch.on_first_death
    ];
    _jobs jobq_private.new_job[];
    _ids uuid[];
begin
    _jobs := jobq_private.read_jobs(
        (select coalesce(jsonb_agg(g order by n), '[]') from unnest(_given) with ordinality as u (g, n) where g is not null),
        '{kind,payload,queue,run_at,priority,max_attempts,timeout,metadata,concurrency_key,batch_id}'
    );
    for _n in 1 .. cardinality(_jobs) loop
        _jobs[_n].callback_of := _batch_id;
        _jobs[_n].metadata := coalesce(_jobs[_n].metadata, '{}')
            || jsonb_build_object('batch_id', _batch_id);
    end loop;
    perform jobq_private.check_new_jobs(_jobs);
    _ids := array(
        select s.job_id from jobq_private.store_jobs(_jobs) as s order by s.ordinal
    );
    insert into jobq_private.batch (batch_id, on_success, on_end, on_first_death, queue)
    select
        _batch_id,
        _ids[case when _given[1] is not null then 1 end],
        _ids[case when _given[2] is not null then num_nonnulls(_given[1], _given[2]) end],
        _ids[case when _given[3] is not null then cardinality(_ids) end],
        coalesce(
            (select j.queue from jobq_private.job as j where j.job_id = _ids[1]), 'default'
        );
    return _batch_id;
end
$$;

revoke all on function jobq.open_batch from public;
grant execute on function jobq.open_batch
to jobq_producer;

comment on function jobq.open_batch is
'Makes a batch, with the jobs that run when it has succeeded, has ended, or when a first member is dead; returns its id.';

-- Purpose: run jobs of a tree again that are dead or cancelled.
-- Invariant: each as by redrive(), in one transaction: those that wait for others are blocked
-- again, and what has succeeded does not run again. The blocked ones are locked first, so that
-- who cancels them because of a death is waited for, or sees the redrive. Raises: 22004, 22023, JQ001, JQ002, JQ004.
-- Argument job_id: any job of the tree; for downstream the one from which on
-- Argument scope: failed (all that are dead, and what was cancelled because of them),
-- downstream (this job and what waits for it, as far as dead or cancelled) or all (every dead
-- or cancelled one)
-- Returns: the ids of the jobs that went back.
-- Example: select * from jobq.redrive_tree(:'dead');
create or replace function jobq.redrive_tree(
    job_id uuid, scope text default 'failed'
)
returns setof uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _all uuid[];
    _job_id uuid;
begin
    perform jobq.get_job(redrive_tree.job_id);
    if redrive_tree.scope is null or redrive_tree.scope not in ('failed', 'downstream', 'all')
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'scope must be failed, downstream or all'
        );
    end if;
    _all := array(
        select t.job_id
        from jobq_private.tree(redrive_tree.job_id, case redrive_tree.scope
            when 'downstream' then 'down' else 'all'
        end) as t (job_id)
    );
    perform from jobq_private.job as j
    where j.job_id = any(_all) and j.state = 'blocked'
    order by j.job_id
    for no key update;
    for _job_id in
        select a.job_id
        from jobq_private.job_archive as a
        where a.job_id = any(_all)
        and (
            a.state = 'dead'
            or (
                a.state = 'cancelled'
                and (redrive_tree.scope <> 'failed' or a.last_error_code in ('PARENT_FAILED', 'PARENT_GONE'))
            )
        )
        order by a.job_id
    loop
        perform jobq.redrive(_job_id);
        return next _job_id;
    end loop;
end
$$;

revoke all on function jobq.redrive_tree from public;
grant execute on function jobq.redrive_tree
to jobq_operator;

comment on function jobq.redrive_tree is
'Puts dead and cancelled jobs of a tree back, and returns their ids.';

-- Purpose: record what a step of a job has come to, and return it.
-- Invariant: the first value stays: whoever saves again gets that one, and must go on with
-- it. On a handler's own connection the step commits with what the handler has written.
-- Raises: 22004, 22023, JQ001, JQ003, JQ005, JQ006.
-- Argument name: the step's name, 1 to 256 characters, unique within the job
-- Argument value: what the step has come to: any JSON up to max_payload_bytes
-- Returns: the value that is recorded: an earlier one where there was one
-- Example: select jobq.save_step(:'running', 1, 'charge', '{"charge_id": 7}');
create or replace function jobq.save_step(
    job_id uuid, attempt integer, name text, value jsonb
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _value jsonb;
    _outcome text;
begin
    select s.value, s.outcome into _value, _outcome
    from jobq.save_steps(
        array[save_step.job_id], array[save_step.attempt], array[save_step.name],
        jsonb_build_array(save_step.value)
    ) as s;
    if _outcome = 'lost' then
        perform jobq_private.refuse_attempt(save_step.job_id, save_step.attempt);
    end if;
    return _value;
end
$$;

revoke all on function jobq.save_step from public;
grant execute on function jobq.save_step to jobq_worker;

comment on function jobq.save_step is
'Records what a step of a job has come to, and returns what is recorded: the first value stays.';

-- Purpose: record what steps have come to, many with one call and one commit.
-- Invariant: only the attempt that holds the job records, under the lock of its row; a
-- value that is recorded stays, whoever comes later. outcome is 'saved', 'known' for a
-- step that has a value already, which comes back, or 'lost' for an attempt that no longer
-- holds its job. Rows are locked in the order of their ids.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Argument names: the steps' names, parallel to job_ids, 1 to 256 characters each
-- Argument results: what the steps have come to, a JSON array parallel to job_ids
-- Column name: the step's name
-- Column value: what is recorded; null where the attempt had lost its job
-- Column outcome: `saved`, `known` or `lost`
-- Example: select * from jobq.save_steps(array[:'running']::uuid[], '{1}', '{ship}', '[true]');
create or replace function jobq.save_steps(
    job_ids uuid[], attempts integer[], names text[], results jsonb
)
returns table (job_id uuid, name text, value jsonb, outcome text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
    perform jobq_private.check_steps(
        save_steps.job_ids, save_steps.attempts, save_steps.names, save_steps.results
    );
    return query
    with given as materialized (
        select
            g.job_id, g.attempt, g.name, g.value, g.n,
            row_number() over (
                partition by g.job_id, g.attempt, g.name order by g.n
            ) as place
        from rows from (
            unnest(save_steps.job_ids, save_steps.attempts, save_steps.names),
            jsonb_array_elements(save_steps.results)
        ) with ordinality as g (job_id, attempt, name, value, n)
    ),
    held as materialized (
        select j.job_id, j.attempt
        from jobq_private.job as j
        where j.job_id = any(save_steps.job_ids)
        and j.lease_expires_at is not null
        order by j.job_id
        for no key update of j
    ),
    saved as (
        insert into jobq_private.step as s (job_id, name, value, attempt)
        select distinct on (g.job_id, g.name) g.job_id, g.name, g.value, g.attempt
        from given as g
        join held as h on h.job_id = g.job_id and h.attempt = g.attempt
        order by g.job_id, g.name, g.n
        on conflict on constraint step_pkey do nothing
        returning s.job_id, s.name, s.value
    )
    select
        g.job_id, g.name, case when h.job_id is not null then coalesce(s.value, k.value) end,
        case
            when h.job_id is null then 'lost'
            when s.job_id is not null and g.place = 1 then 'saved'
            else 'known'
        end
    from given as g
    left join held as h on h.job_id = g.job_id and h.attempt = g.attempt
    left join saved as s on s.job_id = g.job_id and s.name = g.name
    left join jobq_private.step as k
        on h.job_id is not null and k.job_id = g.job_id and k.name = g.name
    order by g.n;
end
$$;

revoke all on function jobq.save_steps from public;
grant execute on function jobq.save_steps to jobq_worker;

comment on function jobq.save_steps is
'Records the values of many steps, of one job or of many, and tells for each whether it was new.';

-- Purpose: say that a batch has all its members, so that it can end.
-- Invariant: until it has ended, members may still be added, as by members that run; it ends
-- once no member is live, at once if it has none. Sealing twice is harmless.
-- Raises: 22004, JQ001.
-- Argument batch_id: the batch
-- Example: select jobq.seal_batch(:'batch');
create or replace function jobq.seal_batch(batch_id uuid)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _batch jobq_private.batch := jobq_private.find_batch(seal_batch.batch_id);
begin
    update jobq_private.batch as b
    set sealed_at = now()
    where b.batch_id = _batch.batch_id and b.sealed_at is null;
    insert into jobq_private.look (about, id) values ('batch', _batch.batch_id);
    perform jobq_private.wake(array[_batch.queue]);
end
$$;

revoke all on function jobq.seal_batch from public;
grant execute on function jobq.seal_batch
to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.seal_batch is
'Says that a batch has all its members: it ends once none of them is live.';

-- Purpose: a job with all that hangs together with it, as nodes and edges, for who draws it.
-- Invariant: reads only. At most max_nodes jobs, those nearest to this one; is_whole tells
-- whether these are all. Edges run from the job that is waited for to the one that waits.
-- Raises: 22004, 22023, JQ001.
-- Argument job_id: any job of the tree
-- Argument max_nodes: at most so many jobs, 1 to 10000.
-- Returns: an object with job_id, graph_id (null where no graph was enqueued), is_whole, nodes (each with
-- job_id, name, kind, queue, state, attempts, max_attempts, created_at, run_at, started_at, finished_at,
-- error_code, error, batch_id, waits_for: how many open edges hold it up, and held_up_by: one of the jobs at
-- the end of them that waits for none itself, null where it is not among these nodes) and edges (each with parent_id, child_id, after_failure, is_open).
-- Example: select jsonb_array_length(jobq.show_graph(:'waiting') -> 'nodes');
create or replace function jobq.show_graph(job_id uuid, max_nodes integer default 1000)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _ids uuid[];
begin
    perform jobq.get_job(show_graph.job_id);
    if show_graph.max_nodes is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_nodes');
    elsif show_graph.max_nodes not between 1 and 10000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_nodes must be from 1 to 10000'
        );
    end if;
    _ids := array(
        select t.job_id
        from jobq_private.tree(show_graph.job_id, 'all', show_graph.max_nodes + 1) as t (job_id)
    );
    return jsonb_build_object(
        'job_id', show_graph.job_id,
        'graph_id', (
            select n.graph_id from jobq_private.node as n where n.job_id = show_graph.job_id
        ),
        'is_whole', cardinality(_ids) <= show_graph.max_nodes,
        'nodes', jobq_private.graph_node_documents(_ids[:show_graph.max_nodes]),
        'edges', jobq_private.graph_edge_documents(_ids[:show_graph.max_nodes])
    );
end
$$;

revoke all on function jobq.show_graph from public;
grant execute on function jobq.show_graph
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.show_graph is
'Returns a job with all that hangs together with it as one JSON document of nodes and edges.';

-- Purpose: tell one job something that it waits for or will: an approval, an answer.
-- Invariant: an event that only this job sees, under the name that it waits for; the first
-- one stays. Joins the caller's transaction. A job that has ended is told nothing.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006.
-- Argument name: the name that the job waits for as an event, 1 to 256 characters
-- Argument payload: what comes with it: any JSON up to max_payload_bytes
-- Returns: true for the first signal of the name
-- Example: select jobq.signal(:'waiting', 'approval', '{"by": "ada"}');
create or replace function jobq.signal(job_id uuid, name text, payload jsonb default 'null')
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq.job := jobq.get_job(signal.job_id);
begin
    perform jobq_private.check_event(signal.name, signal.payload);
    if _job.finished_at is not null then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s is %s: it hears no signal', signal.job_id, _job.state
        ));
    end if;
    return jobq_private.store_event(signal.name, signal.job_id, signal.payload);
end
$$;

revoke all on function jobq.signal from public;
grant execute on function jobq.signal to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.signal is
'Tells one job something that it waits for or will; true for the first of this name.';

-- Purpose: a handler waits for an event, or for a signal to its job of that name.
-- Invariant: outcome is 'arrived' with the payload, 'timed_out', or 'waiting': then the job
-- has been given back, its attempt not counted, and the handler must end; the job is due
-- again when the event comes, at the latest after timeout, which counts from the first
-- call. The attempt that then runs calls again and is told. While an emit is under way that
-- could miss it, the job looks again after a quarter of a second. A transaction with one
-- snapshot cannot see what was emitted since: it leaves a row for maintain(), which looks.
-- Raises: 22004, 22023, JQ001, JQ003. Never: PAYLOAD_TOO_LARGE,
-- PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument timeout: how long at most, from the first call; up to 36500 days; null means that
-- Column outcome: `arrived`, `timed_out` or `waiting`
-- Column payload: what came with the event
-- Example: select * from jobq.wait_for(:'running', 1, 'payment:42', '1 hour');
create or replace function jobq.wait_for(
    job_id uuid, attempt integer, event text, timeout interval default null,
    out outcome text, out payload jsonb
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _emitting constant integer := jobq_private.lock_class('emitting');
    _end jsonb;
    _due timestamptz;
begin
    perform jobq_private.check_event(wait_for.event, 'null');
    if wait_for.timeout < interval '0' or wait_for.timeout > interval '36500 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'timeout must be between 0 and 36500 days'
        );
    end if;
    perform from jobq_private.job as j
    where j.job_id = wait_for.job_id
    and j.attempt = wait_for.attempt
    and j.lease_expires_at is not null
    for no key update;
    if not found then
        perform jobq_private.refuse_attempt(wait_for.job_id, wait_for.attempt);
    end if;

    _end := jobq_private.settle_wait(wait_for.job_id, wait_for.attempt, wait_for.event);
    if _end is null then
        insert into jobq_private.waiter as w (job_id, event, deadline)
        values (
            wait_for.job_id, wait_for.event,
            clock_timestamp() + coalesce(wait_for.timeout, interval '36500 days')
        )
        on conflict on constraint waiter_pkey do update set event = w.event
        returning w.deadline into _due;
        if current_setting('transaction_isolation') <> 'read committed' then
            insert into jobq_private.late_event (event, job_id)
            values (wait_for.event, wait_for.job_id);
        end if;
        if not pg_try_advisory_xact_lock(_emitting, hashtext(wait_for.event) & 1023) then
            _due := least(_due, clock_timestamp() + interval '0.25 s');
        end if;
        _end := jobq_private.settle_wait(wait_for.job_id, wait_for.attempt, wait_for.event);
    end if;
    outcome := coalesce(_end ->> 'outcome', 'waiting');
    payload := _end -> 'payload';
    if _end is null then
        perform jobq.release(wait_for.job_id, wait_for.attempt, _due);
    end if;
end
$$;

revoke all on function jobq.wait_for from public;
grant execute on function jobq.wait_for to jobq_worker;

comment on function jobq.wait_for is
'Waits for an event or a signal: what has come, or that the job has been given back until it comes.';

reset role;

commit;
