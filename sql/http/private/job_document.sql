-- Purpose: a job in the form of the HTTP API.
-- Invariant: one document for both vocabularies: kind is also endpoint, and the payload appears
-- once, under the name of the requested vocabulary, else of the job: input for a delivery.
-- Payload and result keep all digits. Raises: 22023.
create or replace function jobq_private.job_document(job jobq.job, vocabulary text default null)
returns json language plpgsql stable as $$
declare
    _type constant text := jobq_private.endpoint_type(job.kind, job.delivery_version);
    _name constant text := jobq_private.payload_name(coalesce(
        job_document.vocabulary, case when _type is null then 'kind' else 'endpoint' end
    ));
begin
    return (
        select case _name when 'input' then row_to_json(i) else row_to_json(p) end
        from (
            select job.job_id, job.kind as endpoint, _type as endpoint_type,
                jobq_private.job_trigger(job) as trigger,
                case when job.finished_at is null then 'ACTIVE' else 'RETIRED' end as status,
                1 as version, job.idempotency_key,
                json_build_object(
                    'execution_id', job.job_id,
                    'status', jobq_private.execution_status(job.state, job.run_at),
                    'created_at', job.created_at
                ) as execution,
                job.created_at, job.kind, job.queue, job.state, job.metadata, job.dedup_key,
                job.concurrency_key, job.expires_at, job.cost, job.priority, job.attempt,
                job.attempts, job.max_attempts,
                jobq_private.milliseconds(job.timeout) as timeout_ms, job.run_at, job.worker,
                job.claimed_at as started_at, job.heartbeat_at, job.lease_expires_at,
                job.finished_at, job.updated_at,
                job.cancel_requested_at is not null as cancel_requested, job.cancel_reason,
                job.progress, job.result, job.last_error_code, job.last_error, job.schedule_id,
                job.slot_at, job.region, job.batch_id
        ) as d
        cross join lateral (select d.*, job.payload as input) as i
        cross join lateral (select d.*, job.payload) as p
    );
end
$$;
