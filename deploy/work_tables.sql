-- Deploy jobq:work_tables to pg
begin;
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
    stuck integer not null default 0,
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

create table jobq_private.maintenance_task (
    task text not null,
    position integer not null,
    function text not null,
    max_rows integer,
    full_at integer not null default 1000,
    ends_call boolean not null default false,
    due text,
    resume_at jsonb,
    constraint maintenance_task_pkey primary key (task)
);

comment on table jobq_private.maintenance_task is 'What maintain() does, in this order: functions in jobq_private that return how many rows they have dealt with.';
comment on column jobq_private.maintenance_task.max_rows is 'The argument of the function; null for none.';
comment on column jobq_private.maintenance_task.full_at is 'How many rows mean that more is to be done at once.';
comment on column jobq_private.maintenance_task.due is 'A function that says when it has something to do that cannot wait; null where maintain_in() knows, or it can.';
comment on column jobq_private.maintenance_task.resume_at is 'Where the next call of the function begins, for those that look at a part of their rows; null for the beginning.';
comment on column jobq_private.maintenance_task.ends_call is 'Whether maintain() returns after it has done something, so that its locks end.';

-- A recovery does not end the call, though its locks last until then: while leases keep expiring, a
-- caller that does not call again at once would get no further.
insert into jobq_private.maintenance_task (position, task, function, max_rows)
values
(10, 'recovered', 'recover_leases', 1000),
(20, 'expired', 'expire_jobs', 1000),
(60, 'pruned_jobs', 'prune_jobs', 1000),
(70, 'pruned_keys', 'prune_keys', 1000);

insert into jobq_private.maintenance_task (position, task, function, full_at, ends_call)
values
(100, 'made_partitions', 'make_partitions', 1, true),
(110, 'dropped_partitions', 'drop_partitions', 1, true);

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
    delivery_version integer,
    -- whether something may wait for its end: jobs after it, its batch, or what its slot keeps out
    is_awaited boolean
);

comment on type jobq.claimed_job is 'A job as its worker receives it; attempt is the fencing token of every later call.';

-- What a session remembers of a queue, so that its claims do not walk the dead index entries of all
-- jobs claimed before. At no priority a job waits, or can still appear, before the watermark.
create type jobq_private.claim_hint as (
    queue text,
    -- when it is forgotten
    expires_at timestamptz,
    -- when the watermarks are moved again
    refresh_at timestamptz,
    -- where they are moved to
    candidate timestamptz,
    -- once all transactions before this one have ended
    horizon xid8,
    -- the priorities in use, the highest first; null where they are too many
    priorities integer[],
    -- for each of them, the due_at at which claims begin
    watermarks timestamptz[],
    -- the cursor: the last job that a claim has found
    priority smallint,
    due_at timestamptz,
    job_id uuid
);

comment on type jobq_private.claim_hint is 'Where the claims of a session begin in a queue.';

create type jobq_private.claim_plan as (
    -- in which the claim may find jobs, in this order
    queues text[],
    -- those of them about which it must ask on_queue()
    special text[],
    -- kinds whose jobs it leaves: those that the caller excludes, and paused ones
    except_kinds text[]
);

comment on type jobq_private.claim_plan is 'What on_claim() says when a claim begins.';

create type jobq_private.claim_turn as (
    -- already started
    jobs jobq.claimed_job[],
    -- locked, to be started
    found tid[],
    -- of the limit of each found job, if there is one
    slots smallint[],
    -- how many of jobs and found count against max_limited
    limited integer
);

comment on type jobq_private.claim_turn is 'What a claim takes from a queue with limits or keys.';

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

commit;
