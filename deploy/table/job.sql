-- Deploy jobq:table/job to pg
-- Live jobs only. Hot: wide fillfactor margin, eager autovacuum, four partial indexes.
begin;
set local role jobq_owner;

create table jobq_private.job (
    job_id uuid not null,
    created_at timestamptz not null default now(),
    run_at timestamptz not null default now(),
    claimed_at timestamptz,
    heartbeat_at timestamptz,
    lease_expires_at timestamptz,
    cancel_requested_at timestamptz,
    slot_at timestamptz,
    lease interval not null,
    timeout interval not null,
    schedule_id uuid,
    attempt integer not null default 0,
    uncounted integer not null default 0,
    max_attempts integer not null,
    expiries integer not null default 0,
    priority smallint not null default 0,
    state text collate "C" not null default 'queued',
    previous_state text collate "C",
    region text not null default 'default',
    queue text not null,
    kind text not null,
    worker text,
    idempotency_key text,
    dedup_key text,
    dedup text,
    cancel_reason text,
    last_error_code text,
    last_error text,
    last_error_details jsonb,
    metadata jsonb not null default '{}',
    progress jsonb,
    payload jsonb not null default '{}',
    constraint job_pkey primary key (job_id),
    constraint job_transition_fkey foreign key (previous_state, state)
    references jobq_private.transition (from_state, to_state),
    constraint job_previous_state_check
    check (previous_state is not null or (state = 'queued' and attempt = 0)),
    constraint job_lease_check
    check ((state = 'running') = (lease_expires_at is not null)),
    constraint job_attempt_check
    check (state not in ('queued', 'retrying') or attempt - uncounted < max_attempts),
    constraint job_dedup_check check (dedup in ('skip', 'replace')),
    constraint job_last_error_check check (length(last_error) <= 512)
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

comment on table jobq_private.job is 'Live jobs: queued, running or retrying.';

create index job_ready_idx on jobq_private.job (queue, priority desc, run_at, job_id)
where state in ('queued', 'retrying');

create index job_lease_idx on jobq_private.job (lease_expires_at)
where state = 'running';

create unique index job_dedup_idx on jobq_private.job (kind, dedup_key)
where dedup is not null;

create unique index job_schedule_idx on jobq_private.job (schedule_id, slot_at)
where schedule_id is not null;

create table jobq_private.idempotency_key (
    kind text not null,
    idempotency_key text not null,
    job_id uuid not null,
    created_at timestamptz not null default now(),
    constraint idempotency_key_pkey primary key (kind, idempotency_key)
);

create index idempotency_key_created_at_idx on jobq_private.idempotency_key (created_at);

comment on table jobq_private.idempotency_key is 'The job that each idempotency key of a kind has made.';

commit;
