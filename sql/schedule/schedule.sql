-- Purpose: All versions of all schedules, with their next and last slots.
-- Invariant: reads only; functions change schedules. Retired versions are the history.
-- Column schedule_id: the id of this version.
-- Column graph: the jobs that run after each of its jobs; null without a graph.
create or replace view jobq.schedule as
select
    s.schedule_id, s.name, s.version, s.status, s.kind, s.queue, s.cron, s.every,
    s.from_completion, s.time_zone, s.gap, s.fold, s.missed, s.catch_up, s.dedup,
    s.dedup_key, s.concurrency_key, s.jitter, s.starts_at, s.ends_at, s.next_run_at, s.last_tick_at,
    s.payload, s.metadata, s.graph, s.priority, s.max_attempts, s.timeout, s.previous_version_id,
    s.replaced_by_id, s.awaited_job_id, s.paused_at, s.pause_reason, s.region,
    s.created_at, s.retired_at
from jobq_private.schedule as s;

grant select on jobq.schedule to jobq_reader;
