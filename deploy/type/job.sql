-- Deploy jobq:type/job to pg
begin;
set local role jobq_owner;

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
    lease interval
);

comment on type jobq.claimed_job is 'A job as its worker receives it; attempt is the fencing token of every later call.';

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
    slot_at timestamptz
);

comment on type jobq_private.new_job is 'A job as a caller asks for it; null means the default.';

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
    max_depth integer
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
