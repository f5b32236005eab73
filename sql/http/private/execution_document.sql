-- Purpose: a job's execution in the form of the HTTP API.
-- Invariant: a one-shot job and its execution are one row; the execution of a recurring
-- job has the schedule as its job.
create or replace function jobq_private.execution_document(job jobq.job)
returns json
language plpgsql
stable
parallel safe
as $$
begin
    return json_build_object(
        'execution_id', job.job_id,
        'job_id', coalesce(job.schedule_id, job.job_id),
        'endpoint', job.kind,
        'endpoint_type', jobq_private.endpoint_type(job.kind, job.delivery_version),
        'idempotency_key', job.idempotency_key,
        'status', jobq_private.execution_status(job.state, job.run_at),
        'input', job.payload,
        'output', job.result,
        'attempt_count', job.attempts,
        'max_attempts', job.max_attempts,
        'worker_id', job.worker,
        'run_at', job.run_at,
        'started_at', job.claimed_at,
        'completed_at', job.finished_at,
        'duration_ms', jobq_private.milliseconds(job.finished_at - job.claimed_at),
        'created_at', job.created_at,
        'region', job.region
    );
end
$$;
