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
drop constraint if exists "keys, cost and run require the features of jobq";

-- A lane is a queue and a concurrency key; for a kind that has limits for each key the queue, the kind and
-- the key; and for jobs without a key of a kind that has limits the queue and the kind. It has a row for each priority in which work may
-- be had from it, whose lock is the right to claim there; no row says that none waits.
create table jobq_private.lane (
    lane_id uuid not null,
    priority smallint not null,
    queue text not null,
    concurrency_key text,
    kind text,
    state text collate "C" not null default 'open',
    open_at timestamptz not null default '-infinity',
    limit_id uuid,
    constraint lane_pkey primary key (lane_id, priority),
    constraint lane_state_check check (state in ('open', 'full', 'later'))
)
with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

comment on table jobq_private.lane is 'Lanes with work: open; full until a job of theirs ends, until the limit of a kind has room, or a key of a kind; or closed until a time. Who finds a lane full or empty closes it.';

create index lane_open_idx on jobq_private.lane (queue, priority, lane_id)
where state = 'open';

-- Who ends a job looks into this one, which has no entry while no lane is closed.
create index lane_closed_idx on jobq_private.lane (lane_id)
where state <> 'open';

create index lane_open_at_idx on jobq_private.lane (queue, open_at)
where state <> 'full';

create index lane_limit_idx on jobq_private.lane (queue, limit_id, priority, lane_id)
where limit_id is not null;

create index lane_limit_id_idx on jobq_private.lane (limit_id)
where limit_id is not null;

create index lane_kind_idx on jobq_private.lane (kind, concurrency_key)
where kind is not null;

-- What asks for a lane to be opened. Rows are only added and taken away, so that no producer
-- waits for another.
create table jobq_private.lane_call (
    queue text not null,
    lane_id uuid not null,
    concurrency_key text,
    kind text,
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

-- Who adds work asks whether the lane is called already.
create index lane_call_lane_idx on jobq_private.lane_call (lane_id, priority);

-- What single keys may, in place of what their queue says for each key.
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
    constraint "queue must have 1 to 128 characters, and be one queue, not *"
    check (length(queue) between 1 and 128 and queue <> '*'),
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
    check (rate_limit is not null or num_nonnulls(rate_period, rate_burst) = 0),
    constraint "give max_running or rate_limit"
    check (num_nonnulls(max_running, rate_limit, budget) > 0)
);

create index key_limit_rate_idx on jobq_private.key_limit (queue)
where num_nonnulls(rate_limit, budget) > 0;

comment on table jobq_private.key_limit is 'Limits of single keys.';

-- Where jobs pass that rates, holds or the limits of a whole queue or kind bind: of a lane
-- (by its id), a queue, a kind, a kind in a queue, or a key of a kind (by its id, in whichever queue). Its lock is the right to pass. A limit that
-- nobody has passed has no row, but that of a kind, at which claims see that there is one.
create table jobq_private.limit_state (
    limit_id uuid not null,
    queue text,
    kind text,
    scope text,
    level double precision,
    spent numeric,
    charged_at timestamptz,
    charged_since timestamptz,
    idle_at timestamptz,
    full_until timestamptz,
    held_until timestamptz not null default '-infinity',
    hold_reason text,
    concurrency_key text,
    head_job_id uuid,
    dead_job_id uuid,
    constraint limit_state_pkey primary key (limit_id),
    constraint limit_state_hold_reason_check check (length(hold_reason) <= 512)
)
with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

comment on table jobq_private.limit_state is 'What a rate has let start that time has not paid for (level, in units of cost), what a budget has spent in the period of charged_at, until when the next job does not fit into it, and from when nothing of that counts (idle_at); until when a key or kind is held, and which; the last job of an ordered lane; and the dead job for which a key is held.';

create index limit_state_held_idx on jobq_private.limit_state (queue, held_until)
where held_until > '-infinity';

create index limit_state_scope_idx on jobq_private.limit_state (scope, concurrency_key) where spent is not null;

create index limit_state_dead_idx on jobq_private.limit_state (dead_job_id) where dead_job_id is not null;

create index limit_state_kind_idx on jobq_private.limit_state (kind, queue) where kind is not null;

-- What each claim must know of, in a table that is empty as a rule, since a look at one without an
-- index reads no page: the limits of kinds, once more; and with null, that somebody must give places
-- to what runs.
create table jobq_private.known_limit (
    limit_id uuid
);

-- What running attempts have reported that they cost.
create table jobq_private.reported_cost (
    job_id uuid not null,
    attempt integer not null,
    cost numeric not null,
    constraint reported_cost_pkey primary key (job_id)
);

comment on table jobq_private.reported_cost is 'What the last attempt of a job that has said so by spend() has really cost.';

-- So that its rows can be deleted under a publication for all tables.
alter table jobq_private.known_limit replica identity full;

comment on table jobq_private.known_limit is 'Which limits are those of kinds, made from limit, and which kinds have limits for each key; null where what runs may lack places.';

-- Has a row once any job has had a lane, any kind a limit, or any job another that waited for it,
-- and keeps it. Where there is none, a claim looks for nothing of the kind. Without an index, for the same reason.
create table jobq_private.in_use (
    since timestamptz not null default now()
);

alter table jobq_private.in_use replica identity full;

comment on table jobq_private.in_use is 'Whether lanes, limits of kinds or workflows have ever been used here.';

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

-- What holds for a lane: microseconds for one unit of cost, and how many units may start at
-- once.
create type jobq_private.lane_rule as (
    max_running integer,
    spacing double precision,
    burst integer,
    is_ordered boolean,
    holds_on_dead boolean,
    budget jobq_private.budget
);

comment on type jobq_private.lane_rule is 'What holds for a lane.';

-- What holds for each lane of an array: how many jobs may run, how much may start now, which
-- goes before all others, and what its budget has left.
create type jobq_private.lane_bounds as (
    max_running integer[],
    starts integer[],
    heads uuid[],
    lefts numeric[]
);

comment on type jobq_private.lane_bounds is 'What holds for each of some lanes.';

create type jobq_private.queue_look as (
    is_paused boolean,
    is_limited boolean,
    has_kind_limits boolean,
    has_lanes boolean,
    -- whether lanes, limits of kinds or workflows have ever been used in this database
    is_used boolean
);

comment on type jobq_private.queue_look is 'What a claim must know of a queue.';

create type jobq_private.lane_batch as (
    jobs tid[],
    places smallint[],
    idle jobq_private.lane[]
);

comment on type jobq_private.lane_batch is 'What a claim takes from lanes, and the lanes that had nothing.';

insert into jobq_private.maintenance_task (position, task, function, max_rows)
values (75, 'pruned_limits', 'prune_limits', 1000);

insert into jobq_private.maintenance_task (position, task, function)
values (25, 'opened_keys', 'find_stranded');

commit;
