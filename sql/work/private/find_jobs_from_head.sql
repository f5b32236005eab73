-- Purpose: lock the jobs of a queue that a claim takes next, by one scan from the head of the
-- queue. For queues in which too many priorities are in use; else see find_jobs().
-- Invariant: SKIP LOCKED. Callers pin the planner's settings. Raises: nothing.
create or replace function jobq_private.find_jobs_from_head(
    queue text, max_jobs integer, except_kinds text[], kinds text[]
)
returns tid[] language plpgsql as $$
declare
    _now constant timestamptz := clock_timestamp();
begin
    return array(
        select j.ctid
        from jobq_private.job as j
        where j.queue = find_jobs_from_head.queue
        and j.state in ('queued', 'retrying')
        and j.due_at <= _now
        and (find_jobs_from_head.except_kinds is null or j.kind <> all(except_kinds))
        and (find_jobs_from_head.kinds is null or j.kind = any(kinds))
        order by j.priority desc, j.due_at, j.job_id
        limit max_jobs
        for update skip locked
    );
end
$$;
