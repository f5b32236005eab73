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

comment on constraint setting_is_singleton_check on jobq_private.setting is 'there is one row';
comment on constraint setting_max_attempts_check on jobq_private.setting is 'max_attempts must be from 1 to 10000';
comment on constraint setting_timeout_check on jobq_private.setting is 'timeout must be from 1 ms to 365 days';
comment on constraint setting_lease_check on jobq_private.setting is 'lease must be from 1 second to 1 day';
comment on constraint setting_dedup_check on jobq_private.setting is 'dedup must be skip, enqueue or replace';
comment on constraint setting_max_expiries_check on jobq_private.setting is 'max_expiries must be at least 1';
comment on constraint setting_max_payload_bytes_check on jobq_private.setting is 'max_payload_bytes must be from 1024 to 104857600';
comment on constraint setting_max_payload_depth_check on jobq_private.setting is 'max_payload_depth must be from 1 to 512';
comment on constraint setting_retention_check on jobq_private.setting is 'retention must be from 1 day to 36500 days';
comment on constraint setting_key_retention_check on jobq_private.setting is 'key_retention must be from 1 hour to the retention';
comment on constraint setting_retry_preset_fkey on jobq_private.setting is
'retry_preset must be standard, decorrelated, powers_of_two or delivery';

insert into jobq_private.setting default values;

create type jobq_private.budget as (
    amount numeric,
    period text,
    time_zone text
);

comment on type jobq_private.budget is 'How much may be spent in each calendar period.';

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
    budget jobq_private.budget,
    key_budget jobq_private.budget,
    paused_at timestamptz,
    pause_reason text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint queue_pkey primary key (queue),
    constraint queue_queue_check check (length(queue) between 1 and 128 and queue <> '*'),
    constraint queue_max_attempts_check check (max_attempts between 1 and 10000),
    constraint queue_timeout_check check (timeout between '1 ms' and '365 days'),
    constraint queue_lease_check check (lease between '1 s' and '1 day'),
    constraint queue_max_depth_check check (max_depth >= 1),
    constraint queue_max_running_check check (max_running between 1 and 32767),
    constraint queue_rate_limit_check check (rate_limit between 1 and 1000000000),
    constraint queue_rate_period_check
    check (rate_period between '1 ms' and '365 days'),
    constraint queue_rate_burst_check check (rate_burst between 1 and 1000000000),
    constraint queue_rate_check
    check (rate_limit is not null or num_nonnulls(rate_period, rate_burst) = 0),
    constraint queue_key_max_running_check check (key_max_running between 1 and 32767),
    constraint queue_key_rate_limit_check check (key_rate_limit between 1 and 1000000000),
    constraint queue_key_rate_period_check
    check (key_rate_period between '1 ms' and '365 days'),
    constraint queue_key_rate_burst_check check (key_rate_burst between 1 and 1000000000),
    constraint queue_key_rate_check
    check (key_rate_limit is not null or num_nonnulls(key_rate_period, key_rate_burst) = 0),
    constraint queue_on_dead_check check (on_dead in ('continue', 'hold')),
    constraint queue_ordered_check check (ordered is true or on_dead is null),
    constraint queue_retry_preset_fkey foreign key (retry_preset)
    references jobq_private.retry_preset (retry_preset)
);

comment on table jobq_private.queue is 'What a queue says in place of the global defaults, and whether it is paused.';

comment on constraint queue_queue_check on jobq_private.queue is 'queue must have 1 to 128 characters, and must not be *';
comment on constraint queue_max_attempts_check on jobq_private.queue is 'max_attempts must be from 1 to 10000';
comment on constraint queue_timeout_check on jobq_private.queue is 'timeout must be from 1 ms to 365 days';
comment on constraint queue_lease_check on jobq_private.queue is 'lease must be from 1 second to 1 day';
comment on constraint queue_max_depth_check on jobq_private.queue is 'max_depth must be at least 1';
comment on constraint queue_max_running_check on jobq_private.queue is 'max_running must be from 1 to 32767';
comment on constraint queue_rate_limit_check on jobq_private.queue is 'rate_limit must be from 1 to 1000000000';
comment on constraint queue_rate_period_check on jobq_private.queue is 'rate_period must be from 1 ms to 365 days';
comment on constraint queue_rate_burst_check on jobq_private.queue is 'rate_burst must be from 1 to 1000000000';
comment on constraint queue_rate_check on jobq_private.queue is 'rate_period and rate_burst need a rate_limit';
comment on constraint queue_key_max_running_check on jobq_private.queue is 'key_max_running must be from 1 to 32767';
comment on constraint queue_key_rate_limit_check on jobq_private.queue is 'key_rate_limit must be from 1 to 1000000000';
comment on constraint queue_key_rate_period_check on jobq_private.queue is 'key_rate_period must be from 1 ms to 365 days';
comment on constraint queue_key_rate_burst_check on jobq_private.queue is 'key_rate_burst must be from 1 to 1000000000';
comment on constraint queue_key_rate_check on jobq_private.queue is 'key_rate_period and key_rate_burst need a key_rate_limit';
comment on constraint queue_on_dead_check on jobq_private.queue is 'on_dead must be continue or hold';
comment on constraint queue_ordered_check on jobq_private.queue is 'on_dead is only for queues that are ordered';
comment on constraint queue_retry_preset_fkey on jobq_private.queue is
'retry_preset must be standard, decorrelated, powers_of_two or delivery';

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
    key_max_running integer,
    key_rate_limit integer,
    key_rate_period interval,
    key_rate_burst integer,
    ordered boolean,
    on_dead text,
    cost text[],
    budget jobq_private.budget,
    key_budget jobq_private.budget,
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
    constraint kind_queue_check check (length(queue) between 1 and 128 and queue <> '*'),
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
    constraint kind_rate_limit_check check (rate_limit between 1 and 1000000000),
    constraint kind_rate_period_check
    check (rate_period between '1 ms' and '365 days'),
    constraint kind_rate_burst_check check (rate_burst between 1 and 1000000000),
    constraint kind_rate_check
    check (rate_limit is not null or num_nonnulls(rate_period, rate_burst) = 0),
    constraint kind_key_max_running_check check (key_max_running between 1 and 32767),
    constraint kind_key_rate_limit_check check (key_rate_limit between 1 and 1000000000),
    constraint kind_key_rate_period_check
    check (key_rate_period between '1 ms' and '365 days'),
    constraint kind_key_rate_burst_check check (key_rate_burst between 1 and 1000000000),
    constraint kind_key_rate_check
    check (key_rate_limit is not null or num_nonnulls(key_rate_period, key_rate_burst) = 0),
    constraint kind_on_dead_check check (on_dead in ('continue', 'hold')),
    constraint kind_ordered_check check (ordered is true or on_dead is null),
    constraint kind_concurrency_key_check
    check (
        cardinality(concurrency_key) between 1 and 16
        and array_ndims(concurrency_key) = 1
        and array_position(concurrency_key, null) is null
    ),
    constraint kind_cost_check
    check (
        cardinality(cost) between 1 and 16
        and array_ndims(cost) = 1
        and array_position(cost, null) is null
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

comment on constraint kind_kind_check on jobq_private.kind is 'kind must have 1 to 128 characters';
comment on constraint kind_queue_check on jobq_private.kind is 'queue must have 1 to 128 characters, and must not be *';
comment on constraint kind_max_attempts_check on jobq_private.kind is 'max_attempts must be from 1 to 10000';
comment on constraint kind_timeout_check on jobq_private.kind is 'timeout must be from 1 ms to 365 days';
comment on constraint kind_lease_check on jobq_private.kind is 'lease must be from 1 second to 1 day';
comment on constraint kind_retry_strategy_check on jobq_private.kind is 'retry_strategy must be fixed, linear, exponential or decorrelated';
comment on constraint kind_retry_initial_delay_check on jobq_private.kind is 'retry_initial_delay must be from 0 to 365 days';
comment on constraint kind_retry_max_delay_check on jobq_private.kind is 'retry_max_delay must be from 0 to 365 days';
comment on constraint kind_retry_jitter_check on jobq_private.kind is 'retry_jitter must be from 0 to 1';
comment on constraint kind_dedup_check on jobq_private.kind is 'dedup must be skip, enqueue, replace, debounce or throttle';
comment on constraint kind_dedup_period_check on jobq_private.kind is 'dedup_period must be from 1 ms to 365 days';
comment on constraint kind_dedup_max_wait_check on jobq_private.kind is 'dedup_max_wait must be from 1 ms to 365 days';
comment on constraint kind_max_running_check on jobq_private.kind is 'max_running must be from 1 to 32767';
comment on constraint kind_rate_limit_check on jobq_private.kind is 'rate_limit must be from 1 to 1000000000';
comment on constraint kind_rate_period_check on jobq_private.kind is 'rate_period must be from 1 ms to 365 days';
comment on constraint kind_rate_burst_check on jobq_private.kind is 'rate_burst must be from 1 to 1000000000';
comment on constraint kind_rate_check on jobq_private.kind is 'rate_period and rate_burst need a rate_limit';
comment on constraint kind_key_max_running_check on jobq_private.kind is 'key_max_running must be from 1 to 32767';
comment on constraint kind_key_rate_limit_check on jobq_private.kind is 'key_rate_limit must be from 1 to 1000000000';
comment on constraint kind_key_rate_period_check on jobq_private.kind is 'key_rate_period must be from 1 ms to 365 days';
comment on constraint kind_key_rate_burst_check on jobq_private.kind is 'key_rate_burst must be from 1 to 1000000000';
comment on constraint kind_key_rate_check on jobq_private.kind is 'key_rate_period and key_rate_burst need a key_rate_limit';
comment on constraint kind_on_dead_check on jobq_private.kind is 'on_dead must be continue or hold';
comment on constraint kind_version_check on jobq_private.kind is 'version must be at least 1';
comment on constraint kind_retry_preset_fkey on jobq_private.kind is 'retry_preset must be standard, decorrelated, powers_of_two or delivery';
comment on constraint kind_cost_check on jobq_private.kind is 'cost must be a path of 1 to 16 names';
comment on constraint kind_retry_on_check on jobq_private.kind is 'retry_on must hold SQLSTATEs of five digits and capitals, or classes of two';
comment on constraint kind_keep_check on jobq_private.kind is 'keep_succeeded must not be negative; keep_dead and keep_cancelled must be at least 1 hour';
comment on constraint kind_concurrency_key_check on jobq_private.kind is 'concurrency_key must be a path of 1 to 16 members';
comment on constraint kind_ordered_check on jobq_private.kind is 'on_dead is only for kinds that are ordered';

-- What the core alone does not enforce it refuses; the tables of limits take this away.
alter table jobq_private.queue add constraint queue_core_check check (
    num_nonnulls(
        max_running, rate_limit, budget, key_max_running, key_rate_limit, key_budget, ordered,
        on_dead
    ) = 0
);
alter table jobq_private.kind add constraint kind_core_check check (
    num_nonnulls(
        max_running, rate_limit, budget, key_max_running, key_rate_limit, key_budget, ordered,
        on_dead, concurrency_key, cost, run
    ) = 0
);

comment on constraint queue_core_check on jobq_private.queue is 'limits and order require the features of jobq';
comment on constraint kind_core_check on jobq_private.kind is
'limits, order, concurrency_key and run require the features of jobq';

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
    cost text[]
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
