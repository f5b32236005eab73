-- Deploy jobq:job_tables to pg
begin;
set local role jobq_owner;

-- The state machine: no change but these can be stored.
create table jobq_private.transition (
    from_state text collate "C" not null,
    to_state text collate "C" not null,
    cause text not null,
    constraint transition_pkey primary key (from_state, to_state)
);

comment on table jobq_private.transition is 'The legal changes of a job''s state; jobs hold a foreign key to their copies in transition_slot.';

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

-- What the foreign keys refer to: a copy of the legal changes for each slot. A session's slot is the
-- low bits of its pid. A row that many transactions refer to at once gets a multixact for each of
-- them, with all of them as members. Copies for neighbouring pids are on different pages.
create table jobq_private.transition_slot (
    slot smallint not null,
    from_state text collate "C" not null,
    to_state text collate "C" not null
);

comment on table jobq_private.transition_slot is
'The legal changes of a job''s state, a copy for each slot; made from transition.';

insert into jobq_private.transition_slot (slot, from_state, to_state)
select n.slot, t.from_state, t.to_state
from generate_series(0, 1023) as n (slot)
cross join jobq_private.transition as t
order by n.slot % 64, n.slot;

alter table jobq_private.transition_slot
add constraint transition_slot_pkey primary key (slot, from_state, to_state),
add constraint transition_slot_transition_fkey foreign key (from_state, to_state)
references jobq_private.transition (from_state, to_state)
on update cascade on delete cascade;

-- Checks of one column stand in domains: PostgreSQL reads the text of a table's checks anew for
-- each statement, that of a domain's once a session.
create domain jobq_private.dedup as text
constraint job_dedup_check check (value in ('skip', 'replace', 'debounce'));
create domain jobq_private.cost as numeric
constraint job_cost_check check (value between 0 and 1000000000000);
create domain jobq_private.last_error as text
constraint job_last_error_check check (length(value) <= 512);
create domain jobq_private.instant as timestamptz
constraint job_run_at_check check (value between '0001-01-02 UTC' and '9999-12-30 UTC');

comment on domain jobq_private.cost is 'What a job takes from rates and budgets; null means 1.';
comment on domain jobq_private.dedup is 'How a job that holds its dedup key meets another.';
comment on domain jobq_private.instant is 'A time that every client can read.';
comment on domain jobq_private.last_error is 'An error''s text, cut.';

-- Live jobs only. Hot: wide fillfactor margin, eager autovacuum, partial indexes. Jobs
-- under a limit wait in job_key_idx, all others in job_ready_idx. What runs where a max_running
-- holds has a slot, of which job_slot_idx gives each of a key to one job, whoever claims it.
-- The triggers job_birth and job_transition enforce rules between columns for every writer: a
-- running job and no other has a lease, a waiting job has an attempt left, and a new job has no
-- past. A new job has no previous state, so that the foreign key has nothing to check; every
-- change of state sets it.
create table jobq_private.job (
    job_id uuid not null,
    created_at timestamptz not null default current_timestamp,
    run_at jobq_private.instant not null default current_timestamp,
    due_at timestamptz,
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
    transition_slot smallint not null default 0,
    is_awaited boolean not null default false,
    state text collate "C" not null default 'queued',
    previous_state text collate "C",
    region text not null default 'default',
    queue text not null,
    kind text not null,
    key_id uuid,
    concurrency_key text,
    slot smallint,
    cost jobq_private.cost,
    reported_cost jobq_private.cost,
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
    constraint job_transition_fkey foreign key (transition_slot, previous_state, state)
    references jobq_private.transition_slot (slot, from_state, to_state)
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

-- The order of claims. due_at is the moment at which a job becomes claimable, and its place among
-- those of its priority: run_at, or when it was stored or came back where that is later. So nothing
-- is inserted before the present moment. null means that it waits for more than time: for other
-- jobs, or for a limit.
create index job_ready_idx on jobq_private.job (queue, priority desc, due_at, job_id)
where state in ('queued', 'retrying') and due_at is not null;

create index job_key_idx on jobq_private.job (queue, key_id, priority, run_at, job_id)
where key_id is not null and state in ('queued', 'retrying');

create unique index job_slot_idx on jobq_private.job (queue, key_id, slot)
where slot is not null;

create index job_kind_slot_idx on jobq_private.job (kind, concurrency_key)
where slot is not null;

create index job_lease_idx on jobq_private.job (lease_expires_at)
where state = 'running';

create index job_expiry_idx on jobq_private.job (expires_at)
where expires_at is not null and state in ('queued', 'retrying', 'blocked');

-- One job of each key holds it. Beside it stand jobs that look at no other (dedup is null), and a
-- debounced one that has begun: they differ by their ids, and nulls do not.
create unique index job_dedup_idx
on jobq_private.job (kind, dedup_key, (
    case when dedup is null or (dedup = 'debounce' and attempt > 0) then job_id end
))
nulls not distinct
where dedup_key is not null;

create unique index job_schedule_idx on jobq_private.job (schedule_id, slot_at)
where schedule_id is not null;

create index job_blocked_idx on jobq_private.job (queue)
where state = 'blocked';

-- Empty, unless rows have bypassed the triggers.
create index job_odd_idx on jobq_private.job (job_id)
where state not in ('queued', 'running', 'retrying', 'blocked')
or (state = 'running') <> (lease_expires_at is not null)
or state in ('queued', 'retrying') and key_id is null and due_at is null;

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

-- Waiting jobs that have moved between the databases of a cluster: where each went, or null if it
-- came here. The job is in `job` until the other database has confirmed its arrival; `moves`, which
-- goes with it, makes a repeated arrival do nothing.
create table jobq_private.moved_job (
    job_id uuid not null,
    moves integer not null,
    shard_id integer,
    job jsonb,
    moved_at timestamptz not null default now(),
    constraint moved_job_pkey primary key (job_id)
);

create index moved_job_unconfirmed_idx on jobq_private.moved_job (job_id)
where job is not null;

comment on table jobq_private.moved_job is 'Jobs that have moved between the databases of a cluster.';

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
-- partitions take what comes on a day that nobody has made ready.
create table jobq_private.job_archive (
    like jobq_private.job including defaults,
    finished_at timestamptz not null,
    result jsonb,
    prune_at timestamptz,
    constraint job_archive_pkey primary key (job_id, finished_at),
    constraint job_archive_transition_fkey foreign key (transition_slot, previous_state, state)
    references jobq_private.transition_slot (slot, from_state, to_state)
)
partition by range (finished_at);

alter table jobq_private.job_archive
-- squawk-ignore adding-not-nullable-field
alter column previous_state set not null,
-- squawk-ignore adding-not-nullable-field
alter column transition_slot set not null,
alter column transition_slot set default (pg_backend_pid() & 1023);

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
    is_awaited boolean,
    -- what store_jobs() fills in
    job_id uuid,
    lease interval,
    keep interval[],
    delivery_version integer,
    is_limited boolean,
    dedup_period interval,
    dedup_max_wait interval,
    max_depth integer,
    key_id uuid,
    cost numeric
);

comment on type jobq_private.new_job is 'A job as a caller asks for it; null means the default.';

create type jobq_private.ending as (
    job_id uuid,
    attempt integer,
    -- the state in which it was left: retrying or queued when only the attempt has ended
    state text,
    queue text,
    kind text,
    key_id uuid,
    concurrency_key text,
    slot smallint,
    is_awaited boolean,
    batch_id uuid,
    -- whether no trace of the job is kept
    is_gone boolean
);

comment on type jobq_private.ending is 'What on_end() is told of a job whose attempt, or which itself, has ended, or of which nothing is kept any more.';

commit;
