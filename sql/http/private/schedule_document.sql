-- Purpose: a schedule in the form of the HTTP API, as a job with the trigger CRON.
-- Invariant: the next two times have the offset of its zone, if the server has the
-- zone. The payload is passed unchanged. Raises: 22023.
create or replace function jobq_private.schedule_document(
    schedule jobq_private.schedule, vocabulary text default null
)
returns json language plpgsql stable as $$
begin
    return (
        select case jobq_private.payload_name(vocabulary)
            when 'input' then row_to_json(i) else row_to_json(p)
        end
        from (
            select s.schedule_id as job_id, s.kind as endpoint,
                (
                    select e.type from jobq_private.endpoint as e where e.endpoint = s.kind
                ) as endpoint_type,
                'CRON' as trigger, upper(s.status) as status, s.version, s.previous_version_id,
                s.replaced_by_id, s.name, s.cron, jobq_private.milliseconds(s.every) as every_ms,
                s.from_completion, s.time_zone as timezone, s.gap, s.fold, s.missed,
                jobq_private.milliseconds(s.catch_up) as catch_up_ms, s.dedup, s.dedup_key,
                s.concurrency_key, jobq_private.milliseconds(s.jitter) as jitter_ms,
                coalesce(s.starts_at, s.created_at) as starts_at, s.ends_at,
                jobq_private.moment_in(
                    case when s.status = 'active' then s.next_run_at end, s.time_zone
                ) as next_run_at,
                jobq_private.moment_in(s.last_tick_at, s.time_zone) as last_tick_at, s.kind,
                s.queue, s.metadata, jobq_private.graph_document(s.graph) as graph, s.priority,
                s.max_attempts, jobq_private.milliseconds(s.timeout) as timeout_ms, s.paused_at,
                s.pause_reason, s.region, s.created_at, s.retired_at
            from (select (schedule).*) as s
        ) as d
        cross join lateral (select d.*, schedule.payload as input) as i
        cross join lateral (select d.*, schedule.payload) as p
    );
end
$$;
