-- Purpose: All jobs, live and archived. Inserting enqueues; updating state changes the state. FOR
-- UPDATE and FOR SHARE are refused (0A000, "nullable side of an outer join"): use claim(), or
-- claim_job() by id.
-- Invariant: inserts and updates call the functions with the same effect; see
-- job_insert and job_update. FOR UPDATE would silently lock nothing below a UNION. The
-- outer join, which PostgreSQL removes from every other plan, makes it fail (0A000);
-- use claim() to take jobs. attempts has the attempts that count against max_attempts.
-- Column attempt: how often the job was claimed; 0 for a new job. The number of the newest
-- attempt.
-- Column attempts: those that count against max_attempts: not the ones that were released, were
-- rate limited, or waited.
-- Column result: the return value of the succeeded attempt.
-- Column worker: the current or last worker.
-- Column updated_at: when its state last changed.
-- Column expires_at: no attempt starts after this time; null means never.
-- Column cost: amount taken from rates and budgets, without reported costs.
-- Column schedule_id: the schedule version that created it, if any.
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
        j.delivery_version, j.expires_at, j.batch_id, coalesce(j.cost, 1)::numeric as cost,
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
        a.expires_at, a.batch_id, coalesce(a.cost, 1)::numeric, a.finished_at
    from jobq_private.job_archive as a
) as u
left join jobq_private.kind as k on k.kind = u.kind;

grant select on jobq.job to jobq_reader;
grant select, update on jobq.job to jobq_operator;
grant select, insert on jobq.job to jobq_producer;
