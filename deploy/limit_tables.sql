-- Deploy jobq:limit_tables to pg
begin;
set local role jobq_owner;

-- Limits are enforced from now on.
alter table jobq_private.queue
-- squawk-ignore ban-drop-constraint
drop constraint if exists "limits and order require the features of jobq";
alter table jobq_private.kind
-- squawk-ignore ban-drop-constraint
drop constraint if exists "limits and order require the features of jobq",
-- squawk-ignore ban-drop-constraint
drop constraint if exists "keys, cost, run, dead letters require the features of jobq";

-- A limit: of a whole queue, a whole kind, a key of a queue, or a key of a kind in all queues. Jobs
-- without a key of a kind that has limits wait under the limit of the kind; their queue may hold them.
create type jobq_private.scope as (
    limit_id uuid,
    queue text,
    kind text,
    concurrency_key text
);

-- A producer adds a row where none promises that a claim will look; claims close and delete rows. So
-- no producer waits for another, and a key may have duplicate rows until a claim closes it.
create table jobq_private.waiting_key (
    waiting_id bigint generated always as identity,
    key_id uuid not null,
    queue text not null,
    kind text,
    concurrency_key text,
    priority smallint not null,
    state text collate "C" not null default 'open',
    open_at timestamptz not null default '-infinity',
    full_kind text,
    constraint waiting_key_pkey primary key (key_id, waiting_id),
    constraint waiting_key_state_check check (state in ('open', 'full', 'later'))
)
with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

comment on table jobq_private.waiting_key is 'Keys with waiting jobs, for each priority: open; closed until a time (later); or closed until a job of the key ends, or the kind full_kind has room (full). The open_at of a full row opens nothing: it is the run_at of the first job that waits, and only a job that goes before it opens the key.';

create index waiting_key_open_idx on jobq_private.waiting_key (queue, priority, key_id)
where state = 'open';

create index waiting_key_open_at_idx on jobq_private.waiting_key (queue, open_at)
where state <> 'full';

create index waiting_key_full_kind_idx
on jobq_private.waiting_key (queue, full_kind, priority, key_id) where full_kind is not null;

create index waiting_key_kind_idx on jobq_private.waiting_key (full_kind)
where full_kind is not null;

-- Whether any kind has limits is asked by each claim.
-- squawk-ignore require-concurrent-index-creation
create index kind_limited_idx on jobq_private.kind (kind)
where num_nonnulls(
    max_running, rate_limit, budget, key_max_running, key_rate_limit, key_budget, ordered
) > 0;

create table jobq_private.key_limit (
    queue text not null,
    concurrency_key text not null,
    max_running integer,
    rate_limit integer,
    rate_period interval,
    rate_burst integer,
    budget jobq_private.budget,
    updated_at timestamptz not null default now(),
    constraint key_limit_pkey primary key (queue, concurrency_key),
    constraint "queue must have 1 to 128 characters, and must not end in *"
    check (length(queue) between 1 and 128 and right(queue, 1) <> '*'),
    constraint "concurrency_key must have 1 to 1024 bytes"
    check (octet_length(concurrency_key) between 1 and 1024),
    constraint "max_running must be from 1 to 32767"
    check (max_running between 1 and 32767),
    constraint "rate_limit must be from 1 to 1000000000"
    check (rate_limit between 1 and 1000000000),
    constraint "rate_period must be from 1 ms to 365 days"
    check (rate_period between '1 ms' and '365 days'),
    constraint "rate_burst must be from 1 to 1000000000"
    check (rate_burst between 1 and 1000000000),
    constraint "rate_period and rate_burst need a rate_limit"
    check (rate_limit is not null or num_nonnulls(rate_period, rate_burst) = 0)
);

comment on table jobq_private.key_limit is 'Limits of single keys, instead of those that their queue sets for each key.';

-- The lock of a row is the right to start jobs under the limit. A row is made when it is needed, and
-- deleted when it remembers nothing.
create table jobq_private.limit_state (
    limit_id uuid not null,
    queue text,
    kind text,
    concurrency_key text,
    rate_used double precision,
    spent numeric,
    charged_at timestamptz,
    charged_since timestamptz,
    next_cost numeric,
    next_until timestamptz,
    first_job_id uuid,
    constraint limit_state_pkey primary key (limit_id)
)
with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

comment on table jobq_private.limit_state is 'At charged_at: the cost of a rate that time has not paid for, and what a budget had spent in that period. The cost of a job that did not fit into it, for which others wait until next_until. The job of an ordered key that has started last.';

-- Rows are only added and deleted, so that nobody waits for another's hold, nor for a claim; the
-- longest counts.
create table jobq_private.limit_hold (
    limit_id uuid not null,
    hold_id bigint generated always as identity,
    queue text not null,
    kind text,
    concurrency_key text,
    held_until timestamptz not null,
    reason text,
    dead_job_id uuid,
    constraint limit_hold_pkey primary key (limit_id, held_until, hold_id)
);

comment on table jobq_private.limit_hold is 'Until when a key, or a kind without keys, starts no jobs in a queue, and the dead job for which it is held.';

create index limit_hold_queue_idx on jobq_private.limit_hold (queue, held_until);

create index limit_hold_dead_idx on jobq_private.limit_hold (dead_job_id)
where dead_job_id is not null;

create table jobq_private.limit_change (
    change_id bigint generated always as identity,
    changed_at timestamptz not null default '-infinity',
    constraint limit_change_pkey primary key (change_id)
)
with (fillfactor = 50);

insert into jobq_private.limit_change default values;

comment on table jobq_private.limit_change is 'The first row says when limits were changed last: a repeatable snapshot that is older cannot lock it. A further row says that what runs may lack a slot since then, until maintain() has given one.';

-- What a claim must know of a queue.
create type jobq_private.queue_look as (
    is_paused boolean,
    -- whether the queue is limited as a whole, and how many jobs may start then; whether any
    -- kind is limited, or held in the queue
    is_limited boolean,
    max_starts integer,
    has_kind_limits boolean,
    -- whether limits or holds apply to keys of the queue
    has_limits boolean,
    -- whether keys have work
    has_keys boolean
);

insert into jobq_private.maintenance_task (position, task, function, max_rows)
values (75, 'pruned_limits', 'prune_limits', 1000);

insert into jobq_private.maintenance_task (position, task, function)
values (25, 'opened_keys', 'find_waiting_keys');

commit;
