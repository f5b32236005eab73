-- Purpose: a job's execution in the form of the HTTP API.
-- Invariant: a one-shot job and its execution are one row; the execution of a recurring
-- job has the schedule as its job.
create or replace function jobq_private.execution_document(job jobq.job)
returns json language plpgsql stable as $$
begin
    return (
        select row_to_json(d)
        from (
            select job.job_id as execution_id, coalesce(job.schedule_id, job.job_id) as job_id,
                job.kind as endpoint,
                jobq_private.endpoint_type(job.kind, job.delivery_version) as endpoint_type,
                job.idempotency_key,
                jobq_private.execution_status(job.state, job.run_at) as status,
                job.payload as input, job.result as output, job.attempts as attempt_count,
                job.max_attempts, job.worker as worker_id, job.run_at, job.claimed_at as started_at,
                job.finished_at as completed_at,
                jobq_private.milliseconds(job.finished_at - job.claimed_at) as duration_ms,
                job.created_at, job.region
        ) as d
    );
end
$$;
