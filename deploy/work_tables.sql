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
    -- whether something may wait for its end: jobs after it, its batch, or what its place keeps out
    is_awaited boolean
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
    is_look boolean,
    -- whether other sessions have left it, and whether it is worth leaving them one
    is_shared boolean,
    is_slow boolean
);

comment on type jobq_private.claim_mark is 'Where a claim goes on in a queue.';

-- Fronts of queues, by a hash of their names: where the last claim ended and until when others
-- may begin there, as share_front() packs it. A sequence is changed in place, and seen by all
-- at once; unlogged, it costs no log, and after a crash there is no front.
create unlogged sequence jobq_private.claim_front_0;
create unlogged sequence jobq_private.claim_front_1;
create unlogged sequence jobq_private.claim_front_2;
create unlogged sequence jobq_private.claim_front_3;
create unlogged sequence jobq_private.claim_front_4;
create unlogged sequence jobq_private.claim_front_5;
create unlogged sequence jobq_private.claim_front_6;
create unlogged sequence jobq_private.claim_front_7;

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
