-- Purpose: Changes run time, priority, queue, timeout, attempts or payload of waiting
-- jobs, and returns their ids.
-- Invariant: all or none, and only while they wait: skips a job that a worker claims meanwhile.
-- The payload of a job that has run cannot change, nor the concurrency key that a payload
-- contains; a cost that it contains changes with it. A job that waits for an event is due at its
-- deadline at the latest. Raises: 22004, 22023, 42501, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Argument changes: a JSON object with any of run_at (an instant, or `"now"`), priority, queue,
-- payload, timeout, expires_at and max_attempts (above the attempts already used); omitted and
-- null members do not change anything. run_at must be before expires_at.
-- Argument job_ids: these jobs; each must be waiting. Other filters apply too.
-- Argument max_jobs: maximum number, 1 to 100000, the oldest first.
-- Returns: the ids of the jobs.
-- Example: select * from jobq.change_many('{"run_at": "now", "priority": 5}', kind => 'send_email', dry_run => true);
create or replace function jobq.change_many(
    changes jsonb, job_ids uuid[] default null, queue text default null, kind text default null,
    metadata jsonb default null, max_jobs integer default 1000, dry_run boolean default false,
    reason text default null
)
returns setof uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _chosen constant uuid[] := jobq_private.choose_jobs(
        change_many.job_ids, change_many.queue, change_many.kind, change_many.metadata,
        change_many.max_jobs, change_many.dry_run, change_many.reason, '{queued,retrying}'
    );
    _set constant jobq_private.new_job := jobq_private.check_change(change_many.changes, _chosen);
begin
    perform jobq_private.check_worked(_chosen, _set.queue);
    if not change_many.dry_run then
        perform jobq_private.open_keys('{}', freed => array_agg(distinct j.key_id))
        from jobq_private.job as j
        where j.job_id = any(_chosen)
        having num_nonnulls(_set.queue, _set.run_at, _set.priority) > 0;
        update jobq_private.job as j
        set
            run_at = least(coalesce(_set.run_at, j.run_at), (
                select min(w.deadline) from jobq_private.waiter as w
                where w.job_id = j.job_id and _set.run_at is not null
            )),
            priority = coalesce(_set.priority, j.priority),
            queue = coalesce(_set.queue, j.queue),
            key_id = jobq_private.key_of(
                coalesce(_set.queue, j.queue), j.kind, j.concurrency_key, j.key_id is not null
            ),
            payload = coalesce(_set.payload, j.payload),
            cost = (
                select case
                    when j.cost is not distinct from jobq_private.payload_cost(j.payload, k.path)
                    then jobq_private.payload_cost(coalesce(_set.payload, j.payload), k.path)
                    else j.cost
                end
                from (select (
                    select q.cost from jobq_private.kind as q where q.kind = j.kind
                )) as k (path)
            ),
            timeout = coalesce(_set.timeout, j.timeout),
            max_attempts = coalesce(_set.max_attempts, j.max_attempts),
            expires_at = coalesce(_set.expires_at, j.expires_at)
        where j.job_id = any(_chosen);
        perform jobq_private.open_keys(_chosen);
        perform jobq_private.wake(array(
            select distinct j.queue from jobq_private.job as j where j.job_id = any(_chosen)
        ));
        perform jobq_private.record_audit('change ' || (
            select string_agg(k, ', ') from jsonb_object_keys(jsonb_strip_nulls(changes)) as k
        ), c.job_id::text, change_many.reason)
        from unnest(_chosen) as c (job_id);
    end if;
    return query select c.job_id from unnest(_chosen) as c (job_id);
end
$$;
grant execute on function jobq.change_many to jobq_operator;
