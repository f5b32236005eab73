-- Purpose: a job in the form of the HTTP API.
-- Invariant: one document for both vocabularies: kind is also endpoint, and the payload
-- appears once, under the name of the requested vocabulary, else of the job: input for
-- a delivery. Payload and result keep all digits.
-- Raises: 22023.
create or replace function jobq_private.job_document(
    job jobq.job, vocabulary text default null
)
returns json
language plpgsql
stable
parallel safe
as $$
declare
    _endpoint_type text;
begin
    _endpoint_type := jobq_private.endpoint_type(job.kind, job.delivery_version);
    return json_build_object(
        'job_id', job.job_id,
        'endpoint', job.kind,
        'endpoint_type', _endpoint_type,
        'trigger', jobq_private.job_trigger(job),
        'status', case when job.finished_at is null then 'ACTIVE' else 'RETIRED' end,
        'version', 1,
        'idempotency_key', job.idempotency_key,
        jobq_private.payload_name(coalesce(
            job_document.vocabulary,
            case when _endpoint_type is null then 'kind' else 'endpoint' end
        )), job.payload,
        'execution', json_build_object(
            'execution_id', job.job_id,
            'status', jobq_private.execution_status(job.state, job.run_at),
            'created_at', job.created_at
        ),
        'created_at', job.created_at,
        'kind', job.kind,
        'queue', job.queue,
        'state', job.state,
        'metadata', job.metadata,
        'dedup_key', job.dedup_key,
        'concurrency_key', job.concurrency_key,
        'expires_at', job.expires_at,
        'cost', job.cost,
        'priority', job.priority,
        'attempt', job.attempt,
        'attempts', job.attempts,
        'max_attempts', job.max_attempts,
        'timeout_ms', jobq_private.milliseconds(job.timeout),
        'run_at', job.run_at,
        'worker', job.worker,
        'started_at', job.claimed_at,
        'heartbeat_at', job.heartbeat_at,
        'lease_expires_at', job.lease_expires_at,
        'finished_at', job.finished_at,
        'updated_at', job.updated_at,
        'cancel_requested', job.cancel_requested_at is not null,
        'cancel_reason', job.cancel_reason,
        'progress', job.progress,
        'result', job.result,
        'last_error_code', job.last_error_code,
        'last_error', job.last_error,
        'schedule_id', job.schedule_id,
        'slot_at', job.slot_at,
        'region', job.region,
        'batch_id', job.batch_id
    );
end
$$;
