-- Purpose: a schedule in the form of the HTTP API, as a job with the trigger CRON.
-- Invariant: the next two times have the offset of its zone, if the server has the
-- zone. The payload is passed unchanged. Raises: 22023.
create or replace function jobq_private.schedule_document(
    schedule jobq_private.schedule, vocabulary text default null
)
returns json
language plpgsql
stable
as $$
begin
    return json_build_object(
        'job_id', schedule.schedule_id,
        'endpoint', schedule.kind,
        'endpoint_type', (
            select e.type from jobq_private.endpoint as e where e.endpoint = schedule.kind
        ),
        'trigger', 'CRON',
        'status', upper(schedule.status),
        'version', schedule.version,
        'previous_version_id', schedule.previous_version_id,
        'replaced_by_id', schedule.replaced_by_id,
        'name', schedule.name,
        'cron', schedule.cron,
        'every_ms', jobq_private.milliseconds(schedule.every),
        'from_completion', schedule.from_completion,
        'timezone', schedule.time_zone,
        'gap', schedule.gap,
        'fold', schedule.fold,
        'missed', schedule.missed,
        'catch_up_ms', jobq_private.milliseconds(schedule.catch_up),
        'dedup', schedule.dedup,
        'dedup_key', schedule.dedup_key,
        'concurrency_key', schedule.concurrency_key,
        'jitter_ms', jobq_private.milliseconds(schedule.jitter),
        'starts_at', coalesce(schedule.starts_at, schedule.created_at),
        'ends_at', schedule.ends_at,
        'next_run_at', jobq_private.moment_in(
            case when schedule.status = 'active' then schedule.next_run_at end,
            schedule.time_zone
        ),
        'last_tick_at', jobq_private.moment_in(
            schedule.last_tick_at, schedule.time_zone
        ),
        jobq_private.payload_name(vocabulary), schedule.payload,
        'kind', schedule.kind,
        'queue', schedule.queue,
        'metadata', schedule.metadata,
        'graph', jobq_private.graph_document(schedule.graph),
        'priority', schedule.priority,
        'max_attempts', schedule.max_attempts,
        'timeout_ms', jobq_private.milliseconds(schedule.timeout),
        'paused_at', schedule.paused_at,
        'pause_reason', schedule.pause_reason,
        'region', schedule.region,
        'created_at', schedule.created_at,
        'retired_at', schedule.retired_at
    );
end
$$;
