-- Deploy jobq:setting_tables to pg
begin;
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

-- The name of a constraint is the detail of the error when a declaration violates it.
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
    shard_id integer not null default 0,
    constraint setting_pkey primary key (is_singleton),
    constraint "there is one row" check (is_singleton),
    constraint "max_attempts must be from 1 to 10000"
    check (max_attempts between 1 and 10000),
    constraint "timeout must be from 1 ms to 365 days"
    check (timeout between '1 ms' and '365 days'),
    constraint "lease must be from 1 second to 1 day"
    check (lease between '1 s' and '1 day'),
    constraint "dedup must be skip, enqueue or replace"
    check (dedup in ('skip', 'enqueue', 'replace')),
    constraint "max_expiries must be at least 1" check (max_expiries >= 1),
    constraint "max_payload_bytes must be from 1024 to 104857600"
    check (max_payload_bytes between 1024 and 104857600),
    constraint "max_payload_depth must be from 1 to 512"
    check (max_payload_depth between 1 and 512),
    constraint "retention must be from 1 day to 36500 days"
    check (retention between '1 day' and '36500 days'),
    constraint "key_retention must be from 1 hour to the retention"
    check (key_retention between '1 hour' and retention),
    constraint "shard_id must be from 0 to 255" check (shard_id between 0 and 255),
    constraint "retry_preset: standard, decorrelated, powers_of_two or delivery"
    foreign key (retry_preset) references jobq_private.retry_preset (retry_preset)
);

comment on table jobq_private.setting is 'Global defaults, in one row, and the number of this database in its cluster.';

insert into jobq_private.setting default values;

create type jobq_private.budget as (
    amount numeric,
    period text,
    time_zone text
);

comment on type jobq_private.budget is 'How much may be spent in each calendar period.';

-- What queues and kinds have in common; a template that is dropped below.
create table jobq_private.declaration (
    priority smallint,
    max_attempts integer,
    timeout interval,
    lease interval,
    retry_preset text,
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
    budget jobq_private.budget,
    key_budget jobq_private.budget,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint "max_attempts must be from 1 to 10000"
    check (max_attempts between 1 and 10000),
    constraint "timeout must be from 1 ms to 365 days"
    check (timeout between '1 ms' and '365 days'),
    constraint "lease must be from 1 second to 1 day"
    check (lease between '1 s' and '1 day'),
    constraint "max_running must be from 1 to 32767"
    check (max_running between 1 and 32767),
    constraint "rate_limit must be from 1 to 1000000000"
    check (rate_limit between 1 and 1000000000),
    constraint "rate_period must be from 1 ms to 365 days"
    check (rate_period between '1 ms' and '365 days'),
    constraint "rate_burst must be from 1 to 1000000000"
    check (rate_burst between 1 and 1000000000),
    constraint "rate_period and rate_burst need a rate_limit"
    check (rate_limit is not null or num_nonnulls(rate_period, rate_burst) = 0),
    constraint "key_max_running must be from 1 to 32767"
    check (key_max_running between 1 and 32767),
    constraint "key_rate_limit must be from 1 to 1000000000"
    check (key_rate_limit between 1 and 1000000000),
    constraint "key_rate_period must be from 1 ms to 365 days"
    check (key_rate_period between '1 ms' and '365 days'),
    constraint "key_rate_burst must be from 1 to 1000000000"
    check (key_rate_burst between 1 and 1000000000),
    constraint "key_rate_period and key_rate_burst need a key_rate_limit"
    check (
        key_rate_limit is not null or num_nonnulls(key_rate_period, key_rate_burst) = 0
    ),
    constraint "on_dead must be continue or hold"
    check (on_dead in ('continue', 'hold')),
    constraint "on_dead requires ordered" check (ordered is true or on_dead is null),
    -- The core refuses what it does not enforce; the tables of limits drop this check.
    constraint "limits and order require the features of jobq" check (num_nonnulls(
        max_running, rate_limit, budget, key_max_running, key_rate_limit, key_budget,
        ordered, on_dead
    ) = 0)
);

create table jobq_private.queue (
    queue text not null,
    like jobq_private.declaration including constraints including defaults,
    max_depth integer,
    paused_at timestamptz,
    pause_reason text,
    constraint queue_pkey primary key (queue),
    constraint "queue must have 1 to 128 characters, and must not end in *"
    check (length(queue) between 1 and 128 and right(queue, 1) <> '*'),
    constraint "max_depth must be at least 1" check (max_depth >= 1),
    constraint "retry_preset: standard, decorrelated, powers_of_two or delivery"
    foreign key (retry_preset) references jobq_private.retry_preset (retry_preset)
);

comment on table jobq_private.queue is 'What a queue says in place of the global defaults, and whether it is paused.';

create table jobq_private.kind (
    kind text not null,
    like jobq_private.declaration including constraints including defaults,
    queue text,
    retry_strategy text,
    retry_initial_delay interval,
    retry_max_delay interval,
    retry_jitter double precision,
    dedup text,
    dedup_key text[],
    dedup_period interval,
    dedup_max_wait interval,
    reuse_key_after_failure boolean,
    concurrency_key text[],
    cost text[],
    keep interval[],
    payload_schema jsonb,
    json_schema jsonb,
    delivery_version integer,
    run text,
    retry_on text[],
    version bigint,
    dead_letter_kind text,
    constraint kind_pkey primary key (kind),
    constraint "kind must have 1 to 128 characters"
    check (length(kind) between 1 and 128),
    constraint "queue must have 1 to 128 characters, and must not end in *"
    check (length(queue) between 1 and 128 and right(queue, 1) <> '*'),
    constraint "retry_strategy: fixed, linear, exponential or decorrelated"
    check (retry_strategy in ('fixed', 'linear', 'exponential', 'decorrelated')),
    constraint "retry_initial_delay must be from 0 to 365 days"
    check (extract(epoch from retry_initial_delay) between 0 and 31536000),
    constraint "retry_max_delay must be from 0 to 365 days"
    check (extract(epoch from retry_max_delay) between 0 and 31536000),
    constraint "retry_jitter must be from 0 to 1" check (retry_jitter between 0 and 1),
    constraint "dedup must be skip, enqueue, replace, debounce or throttle"
    check (dedup in ('skip', 'enqueue', 'replace', 'debounce', 'throttle')),
    constraint "dedup_period must be from 1 ms to 365 days"
    check (dedup_period between '1 ms' and '365 days'),
    constraint "dedup_max_wait must be from 1 ms to 365 days"
    check (dedup_max_wait between '1 ms' and '365 days'),
    constraint "concurrency_key must be a path of 1 to 16 members" check (
        cardinality(concurrency_key) between 1 and 16
        and array_ndims(concurrency_key) = 1
        and array_position(concurrency_key, null) is null
    ),
    constraint "cost must be a path of 1 to 16 names" check (
        cardinality(cost) between 1 and 16 and array_ndims(cost) = 1
        and array_position(cost, null) is null
    ),
    constraint "keep_succeeded must not be negative" check (keep[1] >= '0'),
    constraint "keep_dead must be at least 1 hour" check (keep[2] >= '1 hour'),
    constraint "keep_cancelled must be at least 1 hour" check (keep[3] >= '1 hour'),
    constraint "retry_on must hold SQLSTATEs, or classes of two characters"
    check (array_to_string(retry_on, ' ', '-') ~ '^([0-9A-Z]{2}([0-9A-Z]{3})?( |$))*$'),
    constraint "dedup_key must be a path of at most 16 names, or several" check (
        cardinality(dedup_key) <= 16 and coalesce(array_ndims(dedup_key), 1) <= 2
        and (
            array_ndims(dedup_key) = 2
            or array_to_string(dedup_key, ' ') = array_to_string(dedup_key, ' ', '-')
        )
    ),
    constraint "dead_letter_kind: another kind, of 1 to 128 characters"
    check (length(dead_letter_kind) between 1 and 128 and dead_letter_kind <> kind),
    constraint "version must be at least 1" check (version > 0),
    constraint "keys, cost, run, dead letters require the features of jobq"
    check (
        num_nonnulls(concurrency_key, cost, run, dead_letter_kind) = 0
    ),
    constraint "retry_preset: standard, decorrelated, powers_of_two or delivery"
    foreign key (retry_preset) references jobq_private.retry_preset (retry_preset)
);

-- squawk-ignore ban-drop-table
drop table jobq_private.declaration;

comment on table jobq_private.kind is 'What a kind of job says in place of its queue''s settings, and the shape of its payload: payload_schema is what the database enforces by itself, json_schema what needs an extension or a client; delivery_version is what a new job is delivered by, where the kind is an endpoint; run is the function that work() calls for a job, retry_on the errors after which it is tried again; keep is how long its jobs are kept that succeeded, are dead, were cancelled; version is that of the program that declared it; dead_letter_kind is the kind of the job that a dead one leaves.';

create table jobq_private.paused_kind (
    kind text not null,
    paused_at timestamptz not null default now(),
    pause_reason text,
    constraint paused_kind_pkey primary key (kind)
);

comment on table jobq_private.paused_kind is 'Kinds whose jobs are not claimed; * stands for every job. Claims read it: it is empty, or small.';

-- How a kind's jobs were to be retried when its definition had this version: jobs keep it.
create table jobq_private.kind_retry (
    kind text not null,
    version integer not null,
    strategy text,
    initial_delay interval,
    max_delay interval,
    jitter double precision,
    constraint kind_retry_pkey primary key (kind, version)
);

comment on table jobq_private.kind_retry is 'How the jobs of each version of an endpoint are retried.';

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
    keep interval[],
    cost text[],
    shard_id integer,
    dedup_key text[]
);

comment on type jobq_private.settings is 'What holds for a new job of a kind in a queue, after resolution.';

create type jobq_private.retry_policy as (
    retry_strategy text,
    retry_initial_delay interval,
    retry_max_delay interval,
    retry_jitter double precision
);

comment on type jobq_private.retry_policy is 'How a failed job of a kind in a queue is tried again, after resolution.';

commit;
