-- Purpose: Creates a recurring job under a name, by cron or every, and returns the id
-- of its version: the existing one for the same definition, else a new one.
-- Invariant: the same definition changes nothing; a different one creates a new version
-- and retires the old one. So every deployment can declare its schedules, even
-- concurrently. A null argument means the default, not the previous value.
-- Raises: 22004, 22023, 42501, JQ001, JQ004, JQ005, JQ006, JQ009.
-- Argument name: the schedule's name, 1 to 128 characters, not a UUID.
-- Argument queue: the queue of its jobs; null means the kind's, else default.
-- Argument missed: which missed slots fire: all, latest or none; null means all for cron,
-- latest for every.
-- Argument dedup: what to do while a job with the same key is live: enqueue, skip or replace;
-- null means enqueue for cron, skip for every.
-- Argument dedup_key: the key of its jobs; null means the name.
-- Argument graph: a graph as for enqueue_graph(), run after each of its jobs; jobs without
-- after wait for that job; null means none.
-- Returns: the id of the current version.
-- Example: select jobq.create_schedule('daily report', 'report', '0 7 * * *', time_zone => 'Europe/Berlin');
create or replace function jobq.create_schedule(
    name text, kind text, cron text default null, every interval default null,
    time_zone text default 'UTC', payload jsonb default '{}', queue text default null,
    from_completion boolean default false, gap text default 'auto', fold text default 'auto',
    missed text default null, catch_up interval default null, dedup text default null,
    dedup_key text default null, jitter interval default '0', starts_at timestamptz default null,
    ends_at timestamptz default null, priority integer default null,
    max_attempts integer default null, timeout interval default null, metadata jsonb default null,
    concurrency_key text default null, graph jsonb default null
)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _given jobq_private.schedule;
begin
    _given.name := create_schedule.name;
    _given.kind := create_schedule.kind;
    _given.cron := create_schedule.cron;
    _given.every := create_schedule.every;
    _given.time_zone := create_schedule.time_zone;
    _given.payload := create_schedule.payload;
    _given.queue := create_schedule.queue;
    _given.from_completion := create_schedule.from_completion;
    _given.gap := create_schedule.gap;
    _given.fold := create_schedule.fold;
    _given.missed := create_schedule.missed;
    _given.catch_up := create_schedule.catch_up;
    _given.dedup := create_schedule.dedup;
    _given.dedup_key := create_schedule.dedup_key;
    _given.jitter := create_schedule.jitter;
    _given.starts_at := create_schedule.starts_at;
    _given.ends_at := create_schedule.ends_at;
    _given.priority := create_schedule.priority;
    _given.max_attempts := create_schedule.max_attempts;
    _given.timeout := create_schedule.timeout;
    _given.metadata := create_schedule.metadata;
    _given.concurrency_key := create_schedule.concurrency_key;
    _given.graph := create_schedule.graph;
    return (jobq_private.schedule_declare(_given, false)).schedule_id;
end
$$;
grant execute on function jobq.create_schedule to jobq_producer, jobq_worker, jobq_operator;
